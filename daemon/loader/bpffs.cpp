#include "bpffs.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <linux/magic.h>
#include <sys/vfs.h>

namespace btfd::loader {

namespace {

/// Where systemd and everybody else mounts it.
constexpr std::string_view kUsualBpffs = "/sys/fs/bpf";

} // namespace

std::string notOnBpffs(const std::string& directory) {
  // Nobody should mount over a directory of their own because we said so.
  const std::string usual(kUsualBpffs);
  if (directory == usual || directory.starts_with(usual + "/")) {
    return "no bpffs is mounted at " + usual + "; mount it with: mount -t bpf bpf " + usual + ", and restart btfd";
  }
  return directory +
         " is not on a bpffs; choose a directory below one (bpffs in the configuration, --bpffs), such as " + usual +
         "/btfd, and restart btfd";
}

std::string whyNotPinnable(const std::string& path) {
  const std::filesystem::path owners = std::filesystem::path(path).parent_path().parent_path();
  const std::string directory = owners.parent_path().string();
  struct statfs status{};
  if (::statfs(owners.c_str(), &status) == 0) {
    return status.f_type == BPF_FS_MAGIC ? "" : notOnBpffs(directory);
  }
  if (errno != ENOENT) {
    return "cannot look at " + owners.string() + ": " + std::strerror(errno);
  }
  if (::statfs(directory.c_str(), &status) == 0 && status.f_type == BPF_FS_MAGIC) {
    return "there is no " + owners.string() + "; restart btfd, which makes it"; // mounted while it ran
  }
  return notOnBpffs(directory);
}

} // namespace btfd::loader
