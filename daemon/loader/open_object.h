#pragma once

#include "attach.h"
#include "base/unique_fd.h"
#include "failure.h"
#include "job.h"
#include "object/client_bytes.h"
#include "object/libbpf_log.h"
#include "object/opened_object.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace btfd::loader {

/// Reads the object in `file`. io.btfd.InvalidObject if that is none that can be read, LimitExceeded for its size.
Outcome<object::ClientBytes> readObject(BorrowedFd file, const JobLimits& limits);

/// Opens an object that has been checked and relocated; `bytes` must outlive it. What libbpf finds wrong with it is
/// io.btfd.InvalidObject.
Outcome<ObjectHandle> openObject(std::span<const std::byte> bytes, const object::OpenOptions& options,
                                 const object::LibbpfLog& log);

/// io.btfd.NoSuchName if `kconfig` has a name that is none of the object's __kconfig variables.
Outcome<void> checkKconfig(const struct bpf_object& object, const nlohmann::json& kconfig);

/// bpf_object__load: what it fails with as a positive errno value, 0 for success. io.btfd.NoKernelBtf if libbpf has
/// asked for kernel BTF and there was none to lend.
Outcome<int> loadObject(struct bpf_object& object);

/// A global variable of an opened object: its BTF type, and the memory that its map will start with.
struct Variable {
  std::uint32_t typeId;
  std::span<std::byte> memory;
};

/// The global variable called `name`, which may have its section in front as in ".data.limits.maximum", or
/// io.btfd.NoSuchName.
Outcome<Variable> findVariable(const struct bpf_object& object, const MapsByName& maps, const std::string& name);

/// A link for a job's answer; its descriptors become the answer's.
nlohmann::json describeLink(const std::string& program, AttachedLink link, JobReply& reply);

} // namespace btfd::loader
