#pragma once

#include "base/error.h"
#include "base/unique_fd.h"

#include <string>

namespace btfd::btfctl {

/// Opens an existing map: by the path where it is pinned in a bpffs, or by its kernel id when `source` is a number,
/// which needs CAP_SYS_ADMIN. Errors name `source`.
Result<UniqueFd> openMap(const std::string& source);

} // namespace btfd::btfctl
