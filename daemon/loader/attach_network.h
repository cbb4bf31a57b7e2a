#pragma once

#include "attach_request.h"

namespace btfd::loader {

// Programs that see the packets and sockets of cgroups, network namespaces and maps: each checks the request's fields
// and attaches, unless the request is only looked at.

Outcome<AttachedLink> attachCgroup(AttachRequest& request);

/// sk_lookup and flow_dissector.
Outcome<AttachedLink> attachNetworkNamespace(AttachRequest& request);

Outcome<AttachedLink> attachNetfilter(AttachRequest& request);

/// sk_msg and sk_skb.
Outcome<AttachedLink> attachSockmap(AttachRequest& request);

Outcome<AttachedLink> attachSocketFilter(AttachRequest& request);

} // namespace btfd::loader
