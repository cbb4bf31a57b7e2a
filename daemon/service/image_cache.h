#pragma once

#include "base/unique_fd.h"

#include <boost/multi_index/composite_key.hpp>
#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/member.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index/sequenced_index.hpp>
#include <boost/multi_index_container.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace btfd::service {

/// What is kept of an object (object/kept_image.h); several objects may share it.
using SharedImage = std::shared_ptr<const UniqueFd>;

/// Relocated objects, so that the next load of the same object, by whomever, relocates nothing. Those not used for
/// longest go first. For one thread.
///
/// Which object a request is about, only its digest tells, and to compute that is for a worker: it may have to wait for
/// the file. So the front guesses by what the client calls the object, and the worker, which computes the digest
/// anyway, takes the image only if the guess was right.
class ImageCache {
 public:
  struct Image {
    std::string digest;
    /// Generation of the kernel BTF that it is relocated for; 0 for all.
    std::uint64_t generation = 0;
    std::size_t bytes = 0;
    SharedImage memfd;
  };

  static constexpr std::size_t kMostImages = 4096;

  ImageCache();

  /// What `owner` loaded last under this name, if it is kept and of `generation`.
  std::optional<Image> guess(uid_t owner, const std::string& name, std::uint64_t generation);

  /// Keeps an image that `owner` has loaded under this name, as far as all of them fit `limit` bytes. Each takes a
  /// descriptor, too: there are never more than kMostImages, nor than a quarter of those that the process may have.
  void keep(uid_t owner, const std::string& name, Image image, std::size_t limit);

  /// Lets go of as many as are more than `limit` bytes.
  void trim(std::size_t limit);

  /// Of all images, with what they take beside their content.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  [[nodiscard]] std::size_t size() const { return images_.size(); }

 private:
  struct Name {
    uid_t owner;
    std::string name;
    std::string digest;
  };

  /// By how long they have not been used, and by what they are found.
  using Images = boost::multi_index_container<
      Image, boost::multi_index::indexed_by<
                 boost::multi_index::sequenced<>,
                 boost::multi_index::hashed_unique<boost::multi_index::member<Image, std::string, &Image::digest>>>>;
  using Names = boost::multi_index_container<
      Name, boost::multi_index::indexed_by<boost::multi_index::sequenced<>,
                                           boost::multi_index::ordered_unique<boost::multi_index::composite_key<
                                               Name, boost::multi_index::member<Name, uid_t, &Name::owner>,
                                               boost::multi_index::member<Name, std::string, &Name::name>>>>>;

  void note(uid_t owner, const std::string& name, const std::string& digest);
  void drop(Images::iterator image);

  Images images_;
  Names names_;
  std::size_t bytes_ = 0;
  std::size_t mostImages_;
};

} // namespace btfd::service
