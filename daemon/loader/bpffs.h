#pragma once

#include <string>

namespace btfd::loader {

/// That `directory`, where the daemon pins, is not on a bpffs, and what to do about it.
std::string notOnBpffs(const std::string& directory);

/// Why no map can be pinned at `path`, which is DIRECTORY/owners/UID/MAP; empty if the directory does not stand in the
/// way. The front, which makes DIRECTORY/owners, goes on without a bpffs: most objects need none.
std::string whyNotPinnable(const std::string& path);

} // namespace btfd::loader
