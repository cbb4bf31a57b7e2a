#pragma once

#include "loader/failure.h"
#include "registry/registry.h"
#include "worker_pool.h"

#include <sys/types.h>

namespace btfd::service {

/// Gives a load's job, whose body has "parameters", the maps of other objects that these name (io.btfd.MapOfObject): as
/// descriptors behind the client's, "heldMaps" saying which is for which map and field. Only maps of objects of `owner`
/// can be named, whoever that is: with a map, objects of one user would work on what another's programs trust.
loader::Outcome<void> addReferencedMaps(Job& job, uid_t owner, registry::Registry& registry);

} // namespace btfd::service
