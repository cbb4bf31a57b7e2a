#pragma once

#include "attach_request.h"
#include "probe_section.h"
#include "user_binary.h"

namespace btfd::loader {

/// uprobe, uretprobe, their multi and session forms, and usdt: attaches to what the request names, or the section if
/// the request leaves it to that.
Outcome<AttachedLink> attachUserProbe(AttachRequest& request, const ProbeSection& section);

/// The binary that the request names, or else `ofSection`.
Outcome<UserBinary> readBinary(const AttachRequest& request, const std::string& ofSection);

} // namespace btfd::loader
