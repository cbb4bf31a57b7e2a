#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Reads or changes entries of a loaded object's map, for io.btfd.MapDump, MapLookup, MapUpdate and MapDelete.
///
/// `request`: "method", the one of these; "parameters", as the client sent them, whose "entry" has what the method
/// needs; "image" and "relocated", what is kept of the object, as runAttachJob takes them; "mapDescriptor". The
/// answer's body is that of the method.
Outcome<JobReply> runMapJob(const nlohmann::json& request, RequestDescriptors& descriptors);

} // namespace btfd::loader
