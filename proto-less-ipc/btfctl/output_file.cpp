#include "btfctl/output_file.h"

#include "base/unique_fd.h"

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace btfd::btfctl {
namespace {

namespace fs = std::filesystem;

Result<void> writeAll(BorrowedFd file, std::span<const std::byte> content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno != EINTR) {
      return failErrno("cannot write " + path, errno);
    }
    content = content.subspan(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return {};
}

/// A file that goes again unless it takes its place.
class NewFile {
 public:
  /// Beside `path`, so that it can be renamed to it.
  explicit NewFile(const std::string& path) : path_(path + ".XXXXXX"), file_(::mkostemp(path_.data(), O_CLOEXEC)) {}

  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  ~NewFile() {
    if (file_) {
      ::unlink(path_.c_str());
    }
  }

  [[nodiscard]] const UniqueFd& file() const { return file_; }

  Result<void> rename(const std::string& path) {
    if (::rename(path_.c_str(), path.c_str()) != 0) {
      return failErrno("cannot write " + path, errno);
    }
    file_.reset();
    return {};
  }

 private:
  std::string path_;
  UniqueFd file_;
};

/// The mode that open(2) would have given a new file.
mode_t newMode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

/// Gives `file` owner, group and mode of the file that it replaces, as far as this user may; never a set-user-id bit,
/// which was for the old content. Without the old group, what that could do and others could not is nobody's.
int takeOver(BorrowedFd file, const struct stat& replaced) {
  constexpr auto kSame = static_cast<uid_t>(-1);
  mode_t mode = replaced.st_mode & 0777;
  const bool allKept = ::fchown(file.get(), replaced.st_uid, replaced.st_gid) == 0;
  if (!allKept && ::fchown(file.get(), kSame, replaced.st_gid) != 0) {
    mode &= ~static_cast<mode_t>(S_IRWXG) | (mode & S_IRWXO) << 3U;
  }
  return ::fchmod(file.get(), mode);
}

/// Puts a file with `content` at `path`, in place of `replaced` if there was one.
Result<void> replace(const std::string& path, const struct stat* replaced, std::span<const std::byte> content) {
  NewFile made(path);
  if (!made.file()) {
    return failErrno("cannot write " + path, errno);
  }
  if (auto written = writeAll(made.file(), content, path); !written) {
    return written;
  }
  const int changed = replaced == nullptr ? ::fchmod(made.file().get(), newMode()) : takeOver(made.file(), *replaced);
  // A file system that is full may say so only now; and after a crash there must be no empty file of this name.
  if (changed != 0 || ::fsync(made.file().get()) != 0) {
    return failErrno("cannot write " + path, errno);
  }
  return made.rename(path);
}

/// Puts a file with `content` where nothing is yet.
Result<void> create(const std::string& path, std::span<const std::byte> content) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) {
    std::error_code ignored;
    return fail("cannot write " + path + ": it is a symbolic link to " + fs::read_symlink(path, ignored).string() +
                    ", which does not exist; remove the link, or make the file that it refers to",
                ENOENT);
  }
  return replace(path, nullptr, content);
}

/// Replaces the regular file `found` that `path` leads to: the file itself, not a link to it.
Result<void> replaceFound(const std::string& path, const struct stat& found, std::span<const std::byte> content) {
  std::error_code error;
  const std::string real = fs::canonical(path, error).string();
  struct stat status{};
  if (error) {
    return failErrno("cannot write " + path, error.value());
  }
  // Looked up again, without what the kernel asks of links in directories such as /tmp (fs.protected_symlinks).
  if (::lstat(real.c_str(), &status) != 0 || status.st_dev != found.st_dev || status.st_ino != found.st_ino) {
    return fail("cannot write " + path + ": somebody has just changed what it refers to", EAGAIN);
  }
  return replace(real, &found, content);
}

} // namespace

bool isSameFile(const std::string& path, const std::string& other) {
  std::error_code ignored; // then one of them is not there
  return path != "-" && other != "-" && fs::equivalent(path, other, ignored);
}

Result<void> writeOutput(const std::string& path, std::span<const std::byte> content, std::ostream& out) {
  if (path == "-") {
    out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size())); // NOLINT
    out.flush();
    return {};
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return errno == ENOENT ? create(path, content) : failErrno("cannot write " + path, errno);
  }
  if (S_ISREG(status.st_mode)) {
    return replaceFound(path, status, content);
  }
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file ? writeAll(file, content, path) : failErrno("cannot write " + path, errno);
}

} // namespace btfd::btfctl
