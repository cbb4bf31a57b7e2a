#include "object_name.h"

#include "text.h"

#include <array>
#include <climits>

#include <unistd.h>

namespace btfd {

namespace {

bool removeSuffix(std::string_view& text, std::string_view suffix) {
  const bool has = text.ends_with(suffix);
  text.remove_suffix(has ? suffix.size() : 0);
  return has;
}

} // namespace

std::string objectName(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1); // npos + 1 is 0
  if (removeSuffix(path, ".o")) {
    removeSuffix(path, ".bpf");
  }
  return path.size() <= kMaximumObjectName && isShowable(path) ? std::string(path) : std::string();
}

std::string objectName(BorrowedFd file) {
  std::array<char, PATH_MAX> buffer{};
  const std::string link = "/proc/self/fd/" + std::to_string(file.get());
  const ssize_t size = ::readlink(link.c_str(), buffer.data(), buffer.size());
  if (size <= 0) {
    return {};
  }
  // proc(5): a file that has no name any more, as each memfd, ends so; memfd_create(2) has the beginning.
  std::string_view path(buffer.data(), static_cast<std::size_t>(size));
  removeSuffix(path, " (deleted)");
  if (constexpr std::string_view kMemfd = "/memfd:"; path.starts_with(kMemfd)) {
    path.remove_prefix(kMemfd.size());
  }
  return objectName(path);
}

} // namespace btfd
