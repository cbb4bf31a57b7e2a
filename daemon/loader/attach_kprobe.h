#pragma once

#include "attach_request.h"
#include "probe_section.h"

namespace btfd::loader {

/// kprobe, kretprobe, their multi and session forms, ksyscall and kretsyscall: attaches to what the request names, or
/// the section if the request leaves it to that.
Outcome<AttachedLink> attachKernelProbe(AttachRequest& request, const ProbeSection& section);

} // namespace btfd::loader
