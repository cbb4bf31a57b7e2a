#pragma once

#include "base/error.h"
#include "object_file.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace btfd::bench {

/// What one load allocates in the worker, on average, when the daemon has not seen the object before.
struct Allocations {
  double count = 0;
  double bytes = 0;
};

/// Starts a daemon of its own with allocation_counter.cpp (the library `counter`) preloaded and loads each object some
/// times. Not timed, as counting costs. Returns one entry for each of `objects`, by the same name.
Result<std::map<std::string, Allocations>> countAllocations(const std::filesystem::path& daemon,
                                                            const std::filesystem::path& counter,
                                                            std::map<std::string, ObjectFile> objects);

} // namespace btfd::bench
