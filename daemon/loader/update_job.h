#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Has a link run another program from one event to the next. `request`: "linkDescriptor", which is a socket if
/// "isSocket", "programDescriptor", "oldProgramDescriptor" if it is held, and for the error "program", "kind" and
/// "target". What the kernel refuses, as it does for many kinds of links, is io.btfd.AttachFailed.
Outcome<JobReply> runUpdateJob(const nlohmann::json& request, RequestDescriptors& descriptors);

/// The same for a filter of tc; `request` as for one of runTcAttachJob's "filters". That nothing has changed is no
/// error.
Outcome<JobReply> runTcReplaceJob(const nlohmann::json& request, RequestDescriptors& descriptors);

} // namespace btfd::loader
