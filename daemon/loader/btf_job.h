#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Takes the BTF out of a loaded object for io.btfd.GetBtf. `request`: "image" and "relocated", as runAttachJob takes
/// them. The answer's only descriptor is a sealed memfd with it. io.btfd.InvalidObject if the object has none.
Outcome<JobReply> runBtfJob(const nlohmann::json& request, const RequestDescriptors& descriptors);

} // namespace btfd::loader
