#pragma once

#include "attach_request.h"

namespace btfd::loader {

// Programs that see the packets of network interfaces: each checks the request's fields and attaches, unless the
// request is only looked at.

Outcome<AttachedLink> attachXdp(AttachRequest& request);

/// Programs of sections tc, tcx and netkit: by a link of Linux 6.6 and later, or as a filter of tc, which is planned.
Outcome<AttachedLink> attachTrafficControl(AttachRequest& request);

} // namespace btfd::loader
