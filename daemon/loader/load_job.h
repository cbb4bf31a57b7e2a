#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Loads an object for io.btfd.Load: all of it or nothing.
///
/// `request`: "parameters" as the client sent them, with the object always as objectFileDescriptor; "pinDirectory",
/// where maps that the object wants pinned by name are pinned. The answer's body: "object" with digest, programs, maps
/// and links, each with "descriptor", an index; "image", the index of an immutable copy of the object file;
/// "verifierLogs" if asked for; "pinned", the paths of pinned maps.
Outcome<JobReply> runLoadJob(const nlohmann::json& request, RequestDescriptors& descriptors, const JobLimits& limits,
                             VerifierLogBuffer& verifierLog);

} // namespace btfd::loader
