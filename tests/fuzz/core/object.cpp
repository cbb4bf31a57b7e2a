// A client's object file, relocated against a small kernel: what has been checked of the file is as true afterwards.
#include "btf/name_index.h"
#include "object/relocate_image.h"
#include "test_support/btf_maker.h"

#include <bpf/libbpf.h>

#include <cstdint>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

struct Kernel {
  Kernel() {
    const auto integer = maker.integer();
    maker.structure("s", {{"before", integer}, {"f", integer}, {"g", maker.array(integer, 8)}});
    maker.enumeration("e", {{"A", 77}});
    index = btfd::btf::NameIndex(maker.btf(), 1);
  }

  btfd::test_support::BtfMaker maker;
  btfd::btf::NameIndex index;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Kernel kernel;
  libbpf_set_print(nullptr);
  const btfd::UniqueFd memfd(::memfd_create("fuzz", MFD_CLOEXEC));
  if (::write(memfd.get(), data, size) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  auto bytes = btfd::object::ClientBytes::read(memfd, std::uint64_t{1} << 30U);
  if (!bytes) {
    return 0;
  }
  const auto image = btfd::object::CheckedImage::check(*bytes);
  if (!image) {
    return 0;
  }
  const auto records = btfd::object::CoreRecords::read(*image);
  if (!records) {
    return 0;
  }
  const auto relocations = records->relocate(*bytes, btfd::core::Targets(kernel.maker.btf(), kernel.index));
  for (const btfd::core::Relocation& each : relocations) {
    static_cast<void>(records->functionOf(each));
    static_cast<void>(records->instructionOf(each));
    static_cast<void>(records->isShared(each));
  }
  const auto again = btfd::object::CheckedImage::check(*bytes);
  if (!again || again->sections().size() != image->sections().size()) {
    std::abort();
  }
  const auto none = btfd::object::CoreRecords::read(*again);
  if (!none || !none->empty()) {
    std::abort();
  }
  return 0;
}
