#include "program_target.h"

#include "kernel_names.h"
#include "object/sought_type.h"
#include "seam.h"

#include <cerrno>
#include <cstring>

namespace btfd::loader {

namespace {

/// Whether what a program of this type attaches to has to be known when it is loaded.
bool hasTarget(enum bpf_prog_type type) {
  return type == BPF_PROG_TYPE_TRACING || type == BPF_PROG_TYPE_LSM || type == BPF_PROG_TYPE_EXT;
}

std::string text(const nlohmann::json& target, const char* field) {
  const auto found = target.find(field);
  return found == target.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

std::unexpected<Failure> refuse(const struct bpf_program& program, const std::string& function, const std::string& path,
                                bool ofProgram, const std::string& inWords, int code) {
  if (ofProgram) {
    return invalidParameter(path + ".function", inWords +
                                                    " is not there: the program's BTF, if it has any, has no "
                                                    "function '" +
                                                    function + "'");
  }
  const auto sought = object::soughtFor(program);
  const std::string prefix = sought ? std::string(sought->prefix) : std::string();
  std::string name = function.substr(function.find(':') + 1); // npos + 1 is 0
  if (sought && !kernelHas(prefix + name, sought->kind)) {
    return invalidParameter(path + ".function", "the kernel has no " + std::string(sought->what) + " '" + name + "'" +
                                                    kernelNamesLike(name, prefix, sought->kind));
  }
  return invalidParameter(path + ".function", "program '" + std::string(bpf_program__name(&program)) +
                                                  "' cannot be made for " + inWords + ": " + std::strerror(code));
}

} // namespace

Outcome<std::string> setProgramTarget(struct bpf_program& program, const nlohmann::json& target,
                                      const std::string& path, std::optional<BorrowedFd> targetProgram) {
  const enum bpf_prog_type type = bpf_program__type(&program);
  const std::string name = bpf_program__name(&program);
  if (!hasTarget(type)) {
    return invalidParameter(path, "program '" + name + "' of type " + libbpf_bpf_prog_type_str(type) +
                                      " is not made for anything when it is loaded; say at attach where to");
  }
  if (type == BPF_PROG_TYPE_EXT && !targetProgram) {
    return invalidParameter(
        path, "program '" + name + "' replaces a function of a loaded BPF program: name that by objectId and program");
  }
  const std::string function = text(target, target.contains("function") ? "function" : "program");
  if (function.empty() || function.contains('\0')) {
    return invalidParameter(path + ".function", "has to be a function's name");
  }
  const std::string inWords = targetProgram ? "function '" + function + "' of program '" + text(target, "program") +
                                                  "' of object " + target.at("objectId").dump()
                                            : function;
  const std::uint64_t missedBefore = seamCounters().missed;
  const int error =
      bpf_program__set_attach_target(&program, targetProgram ? targetProgram->get() : 0, function.c_str());
  if (error != 0 && seamCounters().missed != missedBefore) {
    return noKernelBtf("the object needs kernel BTF");
  }
  return error == 0 ? Outcome<std::string>(inWords)
                    : refuse(program, function, path, targetProgram.has_value(), inWords, -error);
}

void forgetTarget(struct bpf_program& program) {
  const enum bpf_prog_type type = bpf_program__type(&program);
  if (hasTarget(type)) {
    // A change of type makes libbpf forget what it knows of the section.
    bpf_program__set_type(&program, BPF_PROG_TYPE_SOCKET_FILTER);
    bpf_program__set_type(&program, type);
  }
}

} // namespace btfd::loader
