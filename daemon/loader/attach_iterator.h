#pragma once

#include "attach_request.h"

namespace btfd::loader {

/// iter/...: with the parameters that the request has for it.
Outcome<AttachedLink> attachIterator(AttachRequest& request);

} // namespace btfd::loader
