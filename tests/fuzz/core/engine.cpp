// An object's types, records and code, and a kernel's types: whatever they are, each record has an outcome, in time.
// The input: three lengths of 16 bits, then so many bytes of .BTF, .BTF.ext and code, and for the rest kernel BTF.
#include "core/engine.h"

#include "btf/name_index.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(std::as_bytes(std::span(data, size))) {}

  std::size_t length() {
    std::uint16_t value = 0;
    const auto bytes = take(sizeof(value));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  std::span<const std::byte> take(std::size_t size) {
    const auto taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

btfd::btf::BtfHandle parse(std::span<const std::byte> bytes) {
  return btfd::btf::BtfHandle(btf__new(bytes.data(), static_cast<__u32>(bytes.size())));
}

void check(const btfd::core::Relocation& relocation) {
  const bool none = relocation.fault == btfd::core::Fault::none;
  if (none != (relocation.outcome == btfd::core::Outcome::resolved)) {
    std::abort();
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  libbpf_set_print(nullptr);
  Input input(data, size);
  const std::size_t typesLength = input.length();
  const std::size_t recordsLength = input.length();
  const std::size_t codeLength = input.length();
  const btfd::btf::BtfHandle object = parse(input.take(typesLength));
  const auto records = btfd::core::readRecords(input.take(recordsLength));
  const auto code = input.take(codeLength);
  const btfd::btf::BtfHandle kernel = parse(input.take(input.left()));
  if (!object || !records || !kernel) {
    return 0;
  }
  // Each section has code of its own, so that what lies behind it is not its.
  std::vector<std::vector<std::byte>> copies(records->sections.size(), {code.begin(), code.end()});
  const std::vector<std::span<std::byte>> sections(copies.begin(), copies.end());
  const btfd::btf::NameIndex index(*kernel, 1);
  const auto relocations = btfd::core::relocate(btfd::core::Types::ofObject(*object), *records, sections,
                                                btfd::core::Targets(*kernel, index));
  if (relocations.size() != records->records.size()) {
    std::abort();
  }
  std::ranges::for_each(relocations, check);
  return 0;
}
