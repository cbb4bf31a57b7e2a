#pragma once

#include "attach_request.h"
#include "probe_section.h"

namespace btfd::loader {

/// usdt: attaches to the probe that the request names, or the section if the request leaves it to that.
Outcome<AttachedLink> attachUsdt(AttachRequest& request, const ProbeSection& section);

} // namespace btfd::loader
