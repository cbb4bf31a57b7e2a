#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Loads an object for io.btfd.Load: all of it or nothing.
///
/// `request`: "parameters" as the client sent them, with the object always as objectFileDescriptor; "pinDirectory",
/// where maps are pinned; "heldMaps", by map name and field which index is the map of another object that the field
/// names; "kept", if there is reason to think that the object was loaded before: "digest" of that one and "image", the
/// index of what was kept of it.
///
/// The answer's body: "object" with digest, programs, maps and links, each with "descriptor", an index; "verifierLogs"
/// if asked for; "pinned", the paths of pinned maps. What is to be kept of the object is what "kept" said, if "image"
/// is not there, else what that names: if "relocated", a KeptImage (object/kept_image.h), else the object file itself,
/// which had nothing to relocate. "generation", of the kernel BTF that it is relocated for, says that any other load of
/// the object may have it too.
Outcome<JobReply> runLoadJob(const nlohmann::json& request, RequestDescriptors& descriptors, const JobLimits& limits,
                             VerifierLogBuffer& verifierLog);

} // namespace btfd::loader
