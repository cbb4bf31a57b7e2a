#pragma once

#include "base/unique_fd.h"
#include "failure.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace btfd::loader {

/// The descriptors that came with a request, which its fields name by index. As in sd-varlink, each index may be named
/// once. Behind the client's there may be some that the front holds, which no field of the client's can name.
class RequestDescriptors {
 public:
  explicit RequestDescriptors(std::span<const UniqueFd> descriptors)
      : RequestDescriptors(descriptors, descriptors.size()) {}

  /// `ofClient`: how many are the client's.
  RequestDescriptors(std::span<const UniqueFd> descriptors, std::size_t ofClient)
      : descriptors_(descriptors.first(std::min(ofClient, descriptors.size()))),
        held_(descriptors.subspan(descriptors_.size())), used_(descriptors_.size(), false) {}

  /// The descriptor that `index`, the value of field `path`, names; org.varlink.service.InvalidParameter if there is
  /// none.
  Outcome<BorrowedFd> take(const nlohmann::json& index, std::string_view path) {
    if (!index.is_number_integer() || index < 0 || index >= descriptors_.size()) {
      return invalidParameter(path, "index " + index.dump() + " names none of the " +
                                        std::to_string(descriptors_.size()) +
                                        " descriptors that came with the request");
    }
    const auto at = index.get<std::size_t>();
    if (used_[at]) {
      return invalidParameter(path, "descriptor " + std::to_string(at) + " is named by another field already");
    }
    used_[at] = true;
    return BorrowedFd(descriptors_[at]);
  }

  /// The one that the front has put at `index`. Throws std::out_of_range if it has not.
  [[nodiscard]] BorrowedFd held(const nlohmann::json& index) const {
    const auto at = index.get<std::size_t>() - descriptors_.size();
    if (at >= held_.size()) {
      throw std::out_of_range("the front holds no descriptor " + index.dump());
    }
    return BorrowedFd(held_[at]);
  }

 private:
  std::span<const UniqueFd> descriptors_;
  std::span<const UniqueFd> held_;
  std::vector<bool> used_;
};

} // namespace btfd::loader
