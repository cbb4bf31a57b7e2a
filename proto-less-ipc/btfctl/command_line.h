#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace btfd::btfctl {

/// Runs btfctl with `arguments`, without the program's name, and gives its exit status.
int runCommandLine(std::vector<std::string> arguments, std::ostream& out, std::ostream& errors);

} // namespace btfd::btfctl
