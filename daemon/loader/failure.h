#pragma once

#include "base/error.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace btfd::loader {

/// A job's failure in the form that the client gets: a Varlink error and its fields, as io.btfd.varlink declares them.
struct Failure {
  std::string error;
  nlohmann::json parameters;
};

/// `failure` as one sentence, for logs: its message, or for the errors of org.varlink.service, which have none, what is
/// wrong with which parameter.
std::string describe(const Failure& failure);

/// The outcome of a step of a job.
template <typename T>
using Outcome = std::expected<T, Failure>;

/// Longer than a text that people read, in bytes: names of an object's or a kernel's making may be in it.
inline constexpr std::size_t kLongestText = 8192;

/// The failure with texts cut that are longer than people read; the verifier's log has a limit of its own. An object's
/// BTF may call things by names of megabytes.
Failure shortened(Failure failure);

/// "EPERM" for EPERM; the number for what has no name.
std::string errnoName(int code);

/// org.varlink.service.InvalidParameter for the request's field at `path`. The text goes into a field of its own, as
/// the error's own field is only the path.
std::unexpected<Failure> invalidParameter(std::string_view path, std::string message);

/// io.btfd.InvalidObject.
std::unexpected<Failure> invalidObject(std::string message);

/// io.btfd.LimitExceeded: `limit` is what the configuration or the interface calls it.
Failure limitExceeded(std::string message, std::string_view limit, std::uint64_t maximum);

/// The error of a job that needs kernel BTF where there is none to lend. `message` is whole without the reason, which
/// only the front knows.
inline constexpr std::string_view kNoKernelBtf = "io.btfd.NoKernelBtf";
std::unexpected<Failure> noKernelBtf(std::string message);

/// io.btfd.NoSuchName for `name`, with those of `known` that it may have been meant for.
/// `kind`: program, map or variable.
std::unexpected<Failure> noSuchName(std::string_view kind, std::string_view name,
                                    const std::vector<std::string>& known);

} // namespace btfd::loader
