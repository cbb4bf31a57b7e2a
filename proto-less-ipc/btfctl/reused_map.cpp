#include "btfctl/reused_map.h"

#include <bpf/bpf.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <unistd.h>

namespace btfd::btfctl {
namespace {

/// The kernel names the anonymous inode behind a map's descriptor so (bpf_map_new_fd); programs and links have others.
bool isMap(BorrowedFd fd) {
  std::array<char, 64> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) == "anon_inode:bpf-map";
}

Result<UniqueFd> openMapById(std::uint32_t id) {
  UniqueFd map(::bpf_map_get_fd_by_id(id));
  if (map) {
    return map;
  }
  const int code = errno;
  if (code == ENOENT) {
    return fail("there is no map with id " + std::to_string(id), code);
  }
  if (code == EPERM) {
    return fail("cannot open map " + std::to_string(id) +
                    ": opening a map by id needs CAP_SYS_ADMIN; give the path "
                    "where it is pinned",
                code);
  }
  return failErrno("cannot open map " + std::to_string(id), code);
}

} // namespace

Result<UniqueFd> openMap(const std::string& source) {
  std::uint32_t id = 0;
  const char* end = source.data() + source.size();
  if (const auto [stop, error] = std::from_chars(source.data(), end, id); error == std::errc{} && stop == end) {
    return openMapById(id);
  }
  UniqueFd map(::bpf_obj_get(source.c_str()));
  if (!map) {
    return failErrno("cannot open pinned map " + source, errno);
  }
  if (!isMap(map)) {
    return fail(source + " is pinned, but is no map", EINVAL);
  }
  return map;
}

} // namespace btfd::btfctl
