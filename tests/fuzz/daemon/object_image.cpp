// A client's object file: of either byte order: whatever its bytes, an error or sections that lie within them.
#include "object/checked_image.h"

#include <cstdint>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace btfd;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const UniqueFd memfd(::memfd_create("fuzz", MFD_CLOEXEC));
  if (::write(memfd.get(), data, size) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  const auto bytes = object::ClientBytes::read(memfd, std::uint64_t{1} << 30U);
  if (!bytes) {
    return 0;
  }
  const auto image = object::CheckedImage::check(*bytes, object::ByteOrders::any);
  if (!image) {
    return 0;
  }
  if (object::CheckedImage::check(*bytes).has_value() == image->isForeign()) {
    std::abort();
  }
  const auto all = image->bytes();
  for (const object::Section& section : image->sections()) {
    const auto content = section.content;
    if (!content.empty() &&
        (content.data() < all.data() || content.data() + content.size() > all.data() + all.size())) {
      std::abort();
    }
    if (image->find(section.name) == nullptr) {
      std::abort();
    }
  }
  return 0;
}
