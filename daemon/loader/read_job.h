#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Reads a piece of what an iterator's program prints, for io.btfd.Read. Reading runs the program.
///
/// `request`: "source", an index: of a link or, if "begun", of the iterator that an earlier answer sent; "bytes", how
/// many at most. The answer's body: "data"; "end", if that is all; else the iterator is its only descriptor.
Outcome<JobReply> runReadJob(const nlohmann::json& request, const RequestDescriptors& descriptors);

} // namespace btfd::loader
