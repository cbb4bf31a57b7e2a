#pragma once

#include "attach_request.h"

namespace btfd::loader {

// Programs that see packets, sockets and cgroups: each checks the request's fields and attaches, unless the request is
// only looked at.

Outcome<AttachedLink> attachXdp(AttachRequest& request);

/// Programs of section tc and tcx, by a link of Linux 6.6 and later.
Outcome<AttachedLink> attachTcx(AttachRequest& request);

Outcome<AttachedLink> attachCgroup(AttachRequest& request);

/// sk_lookup and flow_dissector.
Outcome<AttachedLink> attachNetworkNamespace(AttachRequest& request);

/// sk_msg and sk_skb.
Outcome<AttachedLink> attachSockmap(AttachRequest& request);

Outcome<AttachedLink> attachSocketFilter(AttachRequest& request);

} // namespace btfd::loader
