#pragma once

#include "btfctl/outcome.h"

#include <string>
#include <string_view>

namespace btfd::btfctl {

/// What a person is told about `failure`: a first line "btfctl: SUBJECT: what happened", then what helps to find out
/// why, such as the end of the verifier's log; all of it, and libbpf's, if `verbose`.
std::string failureText(const Failure& failure, std::string_view subject, bool verbose);

/// What a program is told: one JSON document with "error" and "parameters", as Varlink has them.
std::string failureDocument(const Failure& failure);

} // namespace btfd::btfctl
