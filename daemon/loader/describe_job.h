#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Tells what became of the CO-RE relocations of an object that is loaded, for io.btfd.Describe. They are put into
/// words only now: a load would take the longer for it.
///
/// `request`: "image", the index of what is kept of the object. The answer's body: "relocations", of io.btfd's type
/// Relocation, and "relocationsLeftOut", how many more there are.
Outcome<JobReply> runDescribeJob(const nlohmann::json& request, const RequestDescriptors& descriptors);

} // namespace btfd::loader
