#pragma once

#include "failure.h"

#include <bpf/libbpf.h>
#include <nlohmann/json.hpp>

#include <string>

namespace btfd::loader {

/// Does to `program`, before it is loaded, what `request`, an io.btfd.ProgramRequest at `path`, says of how it is
/// loaded; not what it says of attaching and of the verifier's log. InvalidParameter for what there is not.
Outcome<void> setProgramOptions(struct bpf_program& program, const nlohmann::json& request, const std::string& path);

/// The expected attach type of `program` as libbpf calls it; the number where it has no name for it.
std::string attachTypeName(const struct bpf_program& program);

/// Gives `program` types that it was loaded with, by the names that programs are described with.
void setTypes(struct bpf_program& program, const std::string& type, const std::string& attachType);

} // namespace btfd::loader
