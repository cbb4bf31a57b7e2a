#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

// Filters of tc stay when the process that made them ends. So that none is left by a worker that dies, they are made by
// a job of their own, after another has loaded the program and planned the filter: whoever has this one done knows what
// to remove if it gets no answer.

/// Makes filters: all or none. `request`: "filters", of each what `toJson` gives of a TcFilter and "program" (its
/// name), "target" (in words), "programDescriptor" and, unless it is the worker's own, "namespaceDescriptor". The
/// answer: "qdiscMade", for each whether its interface had no clsact qdisc before.
Outcome<JobReply> runTcAttachJob(const nlohmann::json& request, RequestDescriptors& descriptors);

/// Removes filters that are still the ones that they were. `request`: "filters" likewise, without the program, with
/// "andQdisc". The answer: "errors", of what could not be removed.
Outcome<JobReply> runTcDetachJob(const nlohmann::json& request, RequestDescriptors& descriptors);

} // namespace btfd::loader
