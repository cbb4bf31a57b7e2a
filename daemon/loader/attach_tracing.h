#pragma once

#include "attach_request.h"

namespace btfd::loader {

// Programs that look at what the kernel and its processes do: each checks the request's fields and attaches, unless the
// request is only looked at.

/// Attaches to what the section name says, as libbpf does. `kind` is what the link is then called; `fields` are the
/// request's fields that libbpf makes use of.
Outcome<AttachedLink> attachBySection(AttachRequest& request, std::string_view kind,
                                      std::initializer_list<std::string_view> fields);

/// tp_btf, fentry, fexit, fmod_ret, LSM programs and iterators.
Outcome<AttachedLink> attachTracing(AttachRequest& request);

/// freplace.
Outcome<AttachedLink> attachReplacement(AttachRequest& request);

Outcome<AttachedLink> attachRawTracepoint(AttachRequest& request);

Outcome<AttachedLink> attachTracepoint(AttachRequest& request);

/// kprobes and uprobes of all sorts.
Outcome<AttachedLink> attachProbe(AttachRequest& request);

Outcome<AttachedLink> attachPerfEvent(AttachRequest& request);

} // namespace btfd::loader
