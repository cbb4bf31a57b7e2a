#include "kept_image.h"

#include "base/memfd.h"
#include "checked_image.h"

#include <cerrno>
#include <cstring>
#include <limits>
#include <type_traits>

namespace btfd::object {

namespace {

/// Stands at the memfd's end; right before it, all relocations.
struct Trailer {
  std::uint64_t objectBytes = 0;
  std::uint64_t relocations = 0;
  std::uint64_t generation = 0;
  std::uint64_t recordsLength = 0;
};

static_assert(std::is_trivially_copyable_v<core::Relocation> && std::is_trivially_copyable_v<Trailer>);

std::size_t behindObject(std::uint64_t relocations) {
  return relocations * sizeof(core::Relocation) + sizeof(Trailer);
}

Trailer trailerOf(std::span<const std::byte> all) {
  Trailer trailer;
  std::memcpy(&trailer, all.last(sizeof(Trailer)).data(), sizeof(Trailer));
  return trailer;
}

bool isWhole(std::span<const std::byte> all, const Trailer& trailer) {
  return trailer.relocations <= all.size() / sizeof(core::Relocation) && trailer.objectBytes <= all.size() &&
         all.size() - trailer.objectBytes == behindObject(trailer.relocations);
}

} // namespace

Result<UniqueFd> KeptImage::make(const ClientBytes& bytes, const Relocated& relocated) {
  const auto relocations = std::as_bytes(std::span(relocated.relocations));
  const Trailer trailer{.objectBytes = bytes.bytes().size(),
                        .relocations = relocated.relocations.size(),
                        .generation = relocated.generation,
                        .recordsLength = relocated.recordsLength};
  const auto end = std::as_bytes(std::span(&trailer, 1));
  return sealedMemfd("btfd-object", {bytes.bytes(), relocations, end});
}

Result<KeptImage> KeptImage::open(BorrowedFd memfd) {
  auto image = ofFile(memfd);
  if (!image) {
    return image;
  }
  const auto all = image->bytes_.bytes();
  if (!image->bytes_.isMapping() || all.size() < sizeof(Trailer) || !isWhole(all, trailerOf(all))) {
    return fail("what is kept of the object is no such image", EINVAL);
  }
  image->objectBytes_ = trailerOf(all).objectBytes;
  return image;
}

Result<KeptImage> KeptImage::ofFile(BorrowedFd memfd) {
  auto bytes = ClientBytes::read(memfd, std::numeric_limits<std::uint64_t>::max());
  if (!bytes) {
    return std::unexpected(std::move(bytes.error()));
  }
  const std::size_t size = bytes->bytes().size();
  return KeptImage(std::move(*bytes), size);
}

std::uint64_t KeptImage::generation() const {
  return trailerOf(bytes_.bytes()).generation;
}

Relocated KeptImage::relocated() const {
  const Trailer trailer = trailerOf(bytes_.bytes());
  Relocated relocated{.relocations = std::vector<core::Relocation>(trailer.relocations),
                      .recordsLength = static_cast<std::uint32_t>(trailer.recordsLength),
                      .generation = trailer.generation};
  const auto stored = bytes_.bytes().subspan(objectBytes_, trailer.relocations * sizeof(core::Relocation));
  if (!stored.empty()) {
    std::memcpy(relocated.relocations.data(), stored.data(), stored.size());
  }
  return relocated;
}

Result<CoreRecords> KeptImage::restoreRecords() {
  auto image = CheckedImage::check(bytes_);
  if (!image) {
    return std::unexpected(std::move(image.error()));
  }
  const std::uint64_t length = trailerOf(bytes_.bytes()).recordsLength;
  if (const Section* extension = image->find(".BTF.ext"); extension != nullptr && length != 0) {
    core::restoreRecords(bytes_.writable(extension->content), static_cast<std::uint32_t>(length));
  }
  return CoreRecords::read(*image);
}

} // namespace btfd::object
