#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Lists the instructions of one function of a loaded object for io.btfd.Disassemble. `request`: "parameters", as the
/// client sent them; "image" and "relocated", as runAttachJob takes them.
Outcome<JobReply> runDisassembleJob(const nlohmann::json& request, const RequestDescriptors& descriptors);

} // namespace btfd::loader
