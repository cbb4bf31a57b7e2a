#pragma once

#include "descriptors.h"
#include "failure.h"
#include "job.h"

#include <nlohmann/json.hpp>

namespace btfd::loader {

/// Attaches a program that was loaded by another job, for io.btfd.Attach.
///
/// libbpf attaches programs of its own objects only. So the object's image is opened again, each map is given the
/// descriptor that is held, and the seam answers libbpf's load of the program with the held program: nothing is loaded
/// again, and all of libbpf's attach functions work.
///
/// `request`: "image", which is a KeptImage if "relocated", else an object file; "programDescriptor" and "maps" (name
/// to descriptor) as indexes; "name" of the object; "program"; "target", an io.btfd.AttachTarget; "usdtSpecs" of all
/// of the object's links; "madeFor", if that is not what the program's section says. The answer's body: "link", as in
/// runLoadJob's.
Outcome<JobReply> runAttachJob(const nlohmann::json& request, RequestDescriptors& descriptors);

/// Takes filters off their sockets. All other links, programs and maps end when the caller closes the job's
/// descriptors, for which the kernel may make it wait: that is why it is a job.
///
/// `request`: "links", of each "descriptors" (indexes), "detachBySocketOption", and "programDetach", an attach type,
/// for programs that BPF_PROG_DETACH takes off maps.
void runReleaseJob(const nlohmann::json& request, RequestDescriptors& descriptors);

} // namespace btfd::loader
