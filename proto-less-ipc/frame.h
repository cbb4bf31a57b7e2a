#pragma once

#include "base/unique_fd.h"

#include <string>
#include <vector>

namespace btfd::varlink {

/// One message as it travels: the JSON text without the NUL that ends it, and the descriptors sent with its first byte.
struct Frame {
  std::string text;
  std::vector<UniqueFd> descriptors;
  /// 0, or the errno value for why descriptors that came with this message were closed instead of delivered: EMFILE if
  /// the process could not hold them, E2BIG if there were more than kDescriptorLimit.
  int descriptorError = 0;
};

} // namespace btfd::varlink
