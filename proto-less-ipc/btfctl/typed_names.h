#pragma once

#include <string>
#include <string_view>

namespace btfd::btfctl {

// The daemon's errors name fields of the request, as io.btfd.varlink has them; a person has typed options.

/// What was typed for the request's field at `path`: "--max-entries events" for "maps.events.maxEntries". A field that
/// no option stands for is given in quotes.
std::string typedFor(std::string_view path);

/// `reason`, of an error that concerns a target, with the target's fields called as the keys of TARGET.
std::string withTypedKeys(std::string reason);

} // namespace btfd::btfctl
