#include "pins.h"

#include "loader/bpffs.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace btfd::service {

std::string Pins::directoryOf(uid_t owner) const {
  return ownersDirectory() + "/" + std::to_string(owner);
}

void Pins::sweep(uid_t owner, const registry::Registry& registry) const {
  sweepDirectory(directoryOf(owner), registry);
}

void Pins::sweepAll(const registry::Registry& registry) const {
  std::error_code error;
  for (const auto& owner : std::filesystem::directory_iterator(ownersDirectory(), error)) {
    sweepDirectory(owner.path(), registry);
  }
}

void Pins::removeDirectory() const {
  ::rmdir(ownersDirectory().c_str());
}

void Pins::sweepDirectory(const std::string& directory, const registry::Registry& registry) const {
  std::error_code error;
  for (const auto& pin : std::filesystem::directory_iterator(directory, error)) {
    if (!registry.isPinnedByAny(pin.path().native())) {
      ::unlink(pin.path().c_str());
    }
  }
  ::rmdir(directory.c_str()); // stays while something is in it
}

Result<void> prepareBpffs(const std::string& bpffs) {
  // Looked at before anything is made: what is no bpffs is left as it is.
  const std::string parent = std::filesystem::path(bpffs).parent_path().string();
  struct statfs status{};
  if (::statfs(bpffs.c_str(), &status) < 0 && (errno != ENOENT || ::statfs(parent.c_str(), &status) < 0)) {
    return failErrno("cannot look at " + bpffs, errno);
  }
  if (status.f_type != BPF_FS_MAGIC) {
    return fail(loader::notOnBpffs(bpffs));
  }
  if (::mkdir(bpffs.c_str(), 0700) < 0 && errno != EEXIST) {
    return failErrno("cannot make " + bpffs, errno);
  }
  ::mkdir((bpffs + "/owners").c_str(), 0700);
  return {};
}

Result<UniqueFd> lockBpffs(const std::string& bpffs) {
  UniqueFd directory(::open(bpffs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return failErrno("cannot open " + bpffs, errno);
  }
  // Belongs to the open file, which workers inherit and close: it goes with the daemon, however that ends.
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) < 0) {
    return errno == EWOULDBLOCK
               ? fail("another btfd uses " + bpffs + "; give this one a directory of its own (--bpffs)", EWOULDBLOCK)
               : failErrno("cannot lock " + bpffs, errno);
  }
  return directory;
}

} // namespace btfd::service
