#pragma once

#include "base/error.h"
#include "base/tc_filter.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace btfd::loader {

/// As `tcFilterOf` reads it, which throws nlohmann's exceptions and std::out_of_range for what it does not understand.
nlohmann::json toJson(const TcFilter& filter);
TcFilter tcFilterOf(const nlohmann::json& json);

/// Chooses what is not set of `filter`: the priority before all that the interface has in this direction, and a handle
/// that is not taken; and looks for the qdisc.
Result<void> planTcFilter(TcFilter& filter);

/// Makes the qdisc if there is none, and the filter, which must not be there yet. Tells whether it made the qdisc. The
/// error's code is what the kernel said, after which nothing of it is left.
Result<bool> addTcFilter(const TcFilter& filter, int program);

/// Has the filter, if it still is the one that it was, run another program, without a gap.
Result<void> replaceTcFilter(const TcFilter& filter, int program);

/// Removes the filter if it is there and runs one of its programs; no error if it is not.
/// `andQdisc`: then with the qdisc, if nothing else is on that.
Result<void> removeTcFilter(const TcFilter& filter, bool andQdisc);

} // namespace btfd::loader
