#pragma once

#include "failure.h"
#include "job.h"

namespace btfd::loader {

/// io.btfd.InvalidObject if an arena of the object wants an address at which this process has memory already. libbpf
/// maps arenas with MAP_FIXED, over whatever is there.
Outcome<void> checkArenaAddresses(const MapsByName& maps);

} // namespace btfd::loader
