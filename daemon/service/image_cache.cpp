#include "image_cache.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

#include <sys/resource.h>

namespace btfd::service {

namespace {

/// Names that are remembered, whatever they are of: a client may make up as many as it likes.
constexpr std::size_t kMostNames = 4096;

/// What one image takes beside its bytes, about: the last of its pages, the memfd's inode, the open file and the
/// entries here.
constexpr std::size_t kOverhead = 6144;

} // namespace

ImageCache::ImageCache() : mostImages_(kMostImages) {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    mostImages_ = std::min<std::size_t>(mostImages_, limit.rlim_max / 4); // which the daemon raises its limit to
  }
}

std::optional<ImageCache::Image> ImageCache::guess(uid_t owner, const std::string& name, std::uint64_t generation) {
  const auto& byName = names_.get<1>();
  const auto known = byName.find(std::tuple(owner, std::cref(name)));
  if (known == byName.end()) {
    return std::nullopt;
  }
  const auto& byDigest = images_.get<1>();
  const auto image = byDigest.find(known->digest);
  if (image == byDigest.end() || (image->generation != 0 && image->generation != generation)) {
    return std::nullopt;
  }
  images_.relocate(images_.begin(), images_.project<0>(image));
  names_.relocate(names_.begin(), names_.project<0>(known));
  return *image;
}

void ImageCache::keep(uid_t owner, const std::string& name, Image image, std::size_t limit) {
  image.bytes += kOverhead;
  if (image.bytes > limit) {
    trim(limit);
    return;
  }
  note(owner, name, image.digest);
  auto& byDigest = images_.get<1>();
  if (const auto known = byDigest.find(image.digest); known != byDigest.end()) {
    if (known->generation == image.generation) {
      return; // another name for it, or two loads at the same time
    }
    drop(images_.project<0>(known));
  }
  bytes_ += image.bytes;
  images_.push_front(std::move(image));
  trim(limit);
}

void ImageCache::trim(std::size_t limit) {
  while (bytes_ > limit || images_.size() > mostImages_) {
    drop(std::prev(images_.end()));
  }
}

void ImageCache::note(uid_t owner, const std::string& name, const std::string& digest) {
  auto& byName = names_.get<1>();
  if (const auto known = byName.find(std::tuple(owner, std::cref(name))); known != byName.end()) {
    byName.modify(known, [&](Name& each) { each.digest = digest; });
    names_.relocate(names_.begin(), names_.project<0>(known));
    return;
  }
  names_.push_front(Name{.owner = owner, .name = name, .digest = digest});
  if (names_.size() > kMostNames) {
    names_.pop_back();
  }
}

void ImageCache::drop(Images::iterator image) {
  bytes_ -= image->bytes;
  images_.erase(image);
}

} // namespace btfd::service
