#pragma once

#include "report.h"

#include <nlohmann/json_fwd.hpp>

namespace btfd::check {

/// As io.btfd's type CheckReport, but for the kernel's name.
nlohmann::json toJson(const Report& report);

/// As io.btfd's type Finding.
nlohmann::json toJson(const Finding& finding);

} // namespace btfd::check
