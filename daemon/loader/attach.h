#pragma once

#include "base/unique_fd.h"
#include "descriptors.h"
#include "failure.h"
#include "job.h"
#include "object/libbpf_log.h"
#include "tc_filter.h"

#include <bpf/libbpf.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::loader {

/// How an attachment ends.
enum class DetachBy : std::uint8_t {
  /// Closing its descriptors.
  closing,
  /// Taking the filter off the socket, which is its descriptor: setsockopt(SO_DETACH_BPF), socket(7).
  socketOption,
  /// BPF_PROG_DETACH: its descriptors are the map and the program. From Linux 6.10 on there are links for this.
  programDetach,
};

/// A program attached to something. The descriptors keep it so.
struct AttachedLink {
  /// tp_btf, tracepoint, xdp, tcx, cgroup and so on, as io.btfd.Link says.
  std::string kind;
  /// What it is attached to, in words.
  std::string target;
  /// One, or one for each CPU.
  std::vector<UniqueFd> descriptors;
  std::optional<std::uint32_t> kernelId;
  DetachBy detachBy = DetachBy::closing;

  /// For programDetach.
  enum bpf_attach_type attachType = {};

  /// A filter of tc, which is not made yet: as nothing of this process keeps it, who asked for it has to know of it
  /// before (tc_job.h). Of the interface's network namespace it has the descriptor, unless it is this process's own.
  std::optional<TcFilter> filter = {};
  UniqueFd networkNamespace = {};
  /// For usdt: the numbers of its specifications in the object's map of them, which no other may use while it is there.
  std::vector<std::uint32_t> usdtSpecs = {};
};

/// What is known of a program, beside itself, that is to be attached.
struct AttachContext {
  /// What it was made for, if that is not what its section says.
  std::string madeFor = {};
  /// For an object that was loaded by another job: the usdtSpecs of all its links.
  std::optional<std::vector<std::uint32_t>> usdtSpecsInUse = {};
};

/// Detaches what `attachProgram` attached.
void detach(AttachedLink& link);

/// Attaches loaded `program` of the object that `maps` belong to to `target`, an io.btfd.AttachTarget; `path` is its
/// place in the request. Fields that the program's type does not use are an error, as are targets that do not exist:
/// InvalidParameter. What the kernel refuses is io.btfd.AttachFailed with the kernel's reason and what `log` heard of
/// libbpf.
Outcome<AttachedLink> attachProgram(const MapsByName& maps, struct bpf_program& program, const nlohmann::json& target,
                                    const std::string& path, RequestDescriptors& descriptors,
                                    const object::LibbpfLog& log, AttachContext context = {});

/// Looks whether the target could be attached to, without attaching: that its fields fit the program's type, and that
/// the interface, directory, tracepoint, kernel function or descriptor that they name is there and of the kind that it
/// has to be. Errors are those of attachProgram. Not looked at: functions in binaries, and what is attached already.
Outcome<void> checkTarget(const MapsByName& maps, const struct bpf_program& program, const nlohmann::json& target,
                          const std::string& path, RequestDescriptors& descriptors);

} // namespace btfd::loader
