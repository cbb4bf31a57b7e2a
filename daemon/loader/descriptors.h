#pragma once

#include "base/unique_fd.h"
#include "failure.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace btfd::loader {

/// The descriptors that came with a request, which its fields name by index. As in sd-varlink, each index may be named
/// once.
class RequestDescriptors {
 public:
  explicit RequestDescriptors(std::span<const UniqueFd> descriptors)
      : descriptors_(descriptors), used_(descriptors.size(), false) {}

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

 private:
  std::span<const UniqueFd> descriptors_;
  std::vector<bool> used_;
};

} // namespace btfd::loader
