#pragma once

#include <string_view>

namespace btfd::varlink {

/// The text of an interface whose *.varlink file was built into the program, "io.btfd" for one; empty if there is none.
std::string_view interfaceText(std::string_view interface);

} // namespace btfd::varlink
