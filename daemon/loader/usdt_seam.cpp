#include "usdt_seam.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>
#include <utility>

// The names are the linker's: see seam.cpp.
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
extern "C" {
int __real_bpf_map_update_elem(int fd, const void* key, const void* value, __u64 flags);
struct bpf_link* __real_bpf_program__attach_uprobe_opts(const struct bpf_program* prog, pid_t pid, const char* path,
                                                        size_t offset, const struct bpf_uprobe_opts* opts);
struct bpf_link* __real_bpf_program__attach_uprobe_multi(const struct bpf_program* prog, pid_t pid, const char* path,
                                                         const char* pattern, const struct bpf_uprobe_multi_opts* opts);
}

namespace btfd::loader {

namespace {

UsdtWatch*& watch() {
  static UsdtWatch* current = nullptr;
  return current;
}

/// libbpf's convention for a failure.
int tooMany() {
  errno = E2BIG;
  return -E2BIG;
}

} // namespace

UsdtWatch::UsdtWatch(Maps maps, std::vector<std::uint32_t> free) : maps_(maps), free_(std::move(free)) {
  watch() = this;
}

UsdtWatch::~UsdtWatch() {
  watch() = nullptr;
}

std::optional<std::uint32_t> UsdtWatch::translate(std::uint64_t number) const {
  return number < free_.size() ? std::optional(free_[number]) : std::nullopt;
}

void UsdtWatch::noteLink(struct bpf_link* link) {
  if (link != nullptr) {
    links_.push_back(link);
  }
}

} // namespace btfd::loader

using namespace btfd::loader; // NOLINT(google-build-using-namespace): the wrappers below cannot live in a namespace

extern "C" int __wrap_bpf_map_update_elem(int fd, const void* key, const void* value, __u64 flags) {
  UsdtWatch* current = watch();
  if (current == nullptr || (fd != current->maps().specs && fd != current->maps().ipToSpec)) {
    return __real_bpf_map_update_elem(fd, key, value, flags);
  }
  const bool isSpec = fd == current->maps().specs;
  std::uint32_t number = 0; // key of the one map, value of the other
  std::memcpy(&number, isSpec ? key : value, sizeof(number));
  const auto translated = current->translate(number);
  if (!translated) {
    return tooMany();
  }
  if (isSpec) {
    current->noteSpec(*translated);
    return __real_bpf_map_update_elem(fd, &*translated, value, flags);
  }
  current->notePlaceInMap();
  return __real_bpf_map_update_elem(fd, key, &*translated, flags);
}

extern "C" struct bpf_link* __wrap_bpf_program__attach_uprobe_opts(const struct bpf_program* prog, pid_t pid,
                                                                   const char* path, size_t offset,
                                                                   const struct bpf_uprobe_opts* opts) {
  UsdtWatch* current = watch();
  if (current == nullptr) {
    return __real_bpf_program__attach_uprobe_opts(prog, pid, path, offset, opts);
  }
  struct bpf_uprobe_opts translated = *opts;
  if (!current->placesInMap()) {
    translated.bpf_cookie = current->translate(opts->bpf_cookie).value_or(0); // written to the map just before
  }
  struct bpf_link* link = __real_bpf_program__attach_uprobe_opts(prog, pid, path, offset, &translated);
  current->noteLink(link);
  return link;
}

extern "C" struct bpf_link* __wrap_bpf_program__attach_uprobe_multi(const struct bpf_program* prog, pid_t pid,
                                                                    const char* path, const char* pattern,
                                                                    const struct bpf_uprobe_multi_opts* opts) {
  UsdtWatch* current = watch();
  if (current == nullptr) {
    return __real_bpf_program__attach_uprobe_multi(prog, pid, path, pattern, opts);
  }
  std::vector<__u64> cookies;
  cookies.reserve(opts->cnt);
  for (std::size_t i = 0; i < opts->cnt; ++i) {
    cookies.push_back(current->translate(opts->cookies[i]).value_or(0));
  }
  struct bpf_uprobe_multi_opts translated = *opts;
  translated.cookies = cookies.data();
  struct bpf_link* link = __real_bpf_program__attach_uprobe_multi(prog, pid, path, pattern, &translated);
  current->noteLink(link);
  return link;
}

// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
