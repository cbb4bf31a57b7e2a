#pragma once

#include "base/unique_fd.h"
#include "failure.h"

#include <bpf/libbpf.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace btfd::loader {

/// Makes `program`, which is not loaded yet, one for what `target`, an io.btfd.ProgramTarget, says instead of what its
/// section says: fentry and the like, LSM programs, freplace. `path` is the target's place in the request;
/// `targetProgram` the program of another object that the target names, if it does. Gives what it is for, in words.
Outcome<std::string> setProgramTarget(struct bpf_program& program, const nlohmann::json& target,
                                      const std::string& path, std::optional<BorrowedFd> targetProgram);

/// Has libbpf ask nothing about what `program`, which is loaded already, was made for when its object is opened again:
/// the section may not say it, or say something else.
void forgetTarget(struct bpf_program& program);

} // namespace btfd::loader
