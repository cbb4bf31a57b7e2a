#include "seam.h"

#include "diagnosis.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/eventfd.h>

// The names are the linker's: --wrap=f sends calls of f to __wrap_f and makes the original __real_f.
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
extern "C" {
struct btf* __real_btf__load_vmlinux_btf();
struct btf* __real_btf_get_from_fd(int fd, struct btf* base);
void __real_btf__free(struct btf* btf);
__s32 __real_btf__find_by_name_kind(const struct btf* btf, const char* name, __u32 kind);
__s32 __real_btf__find_by_name_kind_own(const struct btf* btf, const char* name, __u32 kind);
int __real_bpf_prog_load(enum bpf_prog_type type, const char* name, const char* license, const struct bpf_insn* insns,
                         size_t count, struct bpf_prog_load_opts* opts);
int __real_bpf_map_create(__u32 type, const char* name, __u32 keySize, __u32 valueSize, __u32 maxEntries,
                          const struct bpf_map_create_opts* opts);
}

namespace btfd::loader {

namespace {

struct SeamState {
  KernelSpecState kernelSpec = KernelSpecState::libbpfsOwn;
  const btf::KernelSpec* spec = nullptr;
  SeamScope* scope = nullptr;
  SeamCounters counters;
};

SeamState& state() {
  static SeamState instance;
  return instance;
}

/// libbpf's type for a BTF that it may change. It does not change what it looks types up in, and in a worker a write
/// would only reach that worker's own copy of the page.
struct btf* lend(const struct btf& btf) {
  return const_cast<struct btf*>(&btf); // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

bool isVmlinux(const struct btf* btf) {
  return state().spec != nullptr && btf == &state().spec->vmlinux();
}

const btf::ModuleBtf* moduleOf(const struct btf* btf) {
  if (state().spec == nullptr || btf == nullptr) {
    return nullptr;
  }
  const auto modules = state().spec->modules();
  const auto found = std::ranges::find(modules, btf, [](const btf::ModuleBtf& module) { return module.btf.get(); });
  return found == modules.end() ? nullptr : &*found;
}

/// libbpf's convention for a failed look-up (libbpf_err): the negative errno, and errno itself.
__s32 notFound() {
  errno = ENOENT;
  return -ENOENT;
}

/// What btf__find_by_name_kind answers before it looks at any type, or nothing.
std::optional<__s32> specialName(std::string_view name, __u32 kind) {
  if (kind == BTF_KIND_UNKN || name == "void") {
    return 0;
  }
  return std::nullopt;
}

__s32 findInVmlinux(std::string_view name, __u32 kind) {
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): its callers have found `btf` to be of the spec, so there is one
  const auto id = state().spec->index().find(name, kind);
  return id ? static_cast<__s32>(*id) : notFound();
}

__s32 findInModule(const btf::ModuleBtf& module, std::string_view name, __u32 kind) {
  const auto id = module.index.find(name, kind);
  return id ? static_cast<__s32>(*id) : notFound();
}

/// The module whose BTF object `fd` is, as the kernel names it.
std::string btfObjectName(int fd) {
  std::string name(64, '\0'); // MODULE_NAME_LEN (include/linux/module.h)
  struct bpf_btf_info info{};
  info.name = reinterpret_cast<std::uintptr_t>(name.data()); // NOLINT
  info.name_len = static_cast<__u32>(name.size());
  __u32 length = sizeof(info);
  if (bpf_btf_get_info_by_fd(fd, &info, &length) < 0) {
    return {};
  }
  name.resize(std::strlen(name.c_str()));
  return name;
}

void keepVerifierLog(SeamScope& scope, const char* name, const struct bpf_prog_load_opts& opts) {
  if (opts.log_level != 0 && opts.log_buf != nullptr && opts.log_size > 0) {
    const std::string_view log(opts.log_buf, ::strnlen(opts.log_buf, opts.log_size));
    scope.mutableReport().verifierLogs.emplace_back(name, logTail(log, scope.keptOfEachLog()));
  }
}

/// The functions of a program that is given to bpf(2) with `opts`.
std::vector<LoadedFunction> functionsOf(const struct bpf_prog_load_opts* opts) {
  std::vector<LoadedFunction> functions;
  const auto* records = opts == nullptr ? nullptr : static_cast<const char*>(opts->func_info);
  for (std::uint32_t i = 0; records != nullptr && i < opts->func_info_cnt; ++i) {
    // Newer compilers may write longer records than this one knows.
    struct bpf_func_info record{};
    std::memcpy(&record, records + std::size_t{i} * opts->func_info_rec_size,
                std::min<std::size_t>(sizeof(record), opts->func_info_rec_size));
    functions.push_back({.instruction = record.insn_off, .type = record.type_id});
  }
  return functions;
}

} // namespace

void setKernelSpec(KernelSpecState kernelSpec, const btf::KernelSpec* spec) {
  state().kernelSpec = kernelSpec;
  state().spec = spec;
}

LentSpec kernelSpec() {
  return {.state = state().kernelSpec, .spec = state().spec};
}

SeamCounters seamCounters() {
  return state().counters;
}

SeamScope::SeamScope(std::span<const HeldProgram> held) : held_(held) {
  state().scope = this;
}

SeamScope::~SeamScope() {
  state().scope = nullptr;
}

bool SeamScope::isTrialProgram(enum bpf_prog_type type, const char* name, std::size_t count) {
  const bool first = std::exchange(trialExpected_, false);
  return first && name == nullptr && type == BPF_PROG_TYPE_SOCKET_FILTER && count == 2;
}

std::optional<BorrowedFd> SeamScope::heldProgram(std::string_view name) const {
  const auto found = std::ranges::find(held_, name, &HeldProgram::name);
  return found == held_.end() ? std::nullopt : std::optional(found->descriptor);
}

} // namespace btfd::loader

using namespace btfd::loader; // NOLINT(google-build-using-namespace): the wrappers below cannot live in a namespace

extern "C" struct btf* __wrap_btf__load_vmlinux_btf() {
  switch (state().kernelSpec) {
  case KernelSpecState::libbpfsOwn:
    return __real_btf__load_vmlinux_btf();
  case KernelSpecState::lent:
    ++state().counters.borrowed;
    return lend(state().spec->vmlinux());
  case KernelSpecState::notBuilt:
  case KernelSpecState::unavailable:
    break;
  }
  ++state().counters.missed;
  errno = ESRCH; // as btf__load_vmlinux_btf says it
  return nullptr;
}

extern "C" struct btf* __wrap_btf_get_from_fd(int fd, struct btf* base) {
  if (state().spec == nullptr || !isVmlinux(base)) {
    return __real_btf_get_from_fd(fd, base);
  }
  const std::string name = btfObjectName(fd);
  if (const auto* module = state().spec->findModule(name)) {
    ++state().counters.borrowed;
    return lend(*module->btf);
  }
  const auto modules = state().spec->modules();
  if (std::ranges::find(modules, name, &btfd::btf::ModuleBtf::name) != modules.end()) {
    // Left out as broken. libbpf would fail the whole load on it, even if the load needs nothing of it.
    return btf__new_empty_split(base);
  }
  return __real_btf_get_from_fd(fd, base); // loaded since this generation was built
}

extern "C" void __wrap_btf__free(struct btf* btf) {
  if (btf != nullptr && (isVmlinux(btf) || moduleOf(btf) != nullptr)) {
    ++state().counters.returned;
    return;
  }
  __real_btf__free(btf);
}

extern "C" __s32 __wrap_btf__find_by_name_kind(const struct btf* btf, const char* name, __u32 kind) {
  const bool vmlinux = isVmlinux(btf);
  const auto* module = vmlinux ? nullptr : moduleOf(btf);
  if (!vmlinux && module == nullptr) {
    return __real_btf__find_by_name_kind(btf, name, kind);
  }
  if (const auto special = specialName(name, kind)) {
    return *special;
  }
  const __s32 id = findInVmlinux(name, kind); // a split BTF's base is looked at first
  return id > 0 || module == nullptr ? id : findInModule(*module, name, kind);
}

extern "C" __s32 __wrap_btf__find_by_name_kind_own(const struct btf* btf, const char* name, __u32 kind) {
  const bool vmlinux = isVmlinux(btf);
  const auto* module = vmlinux ? nullptr : moduleOf(btf);
  if (!vmlinux && module == nullptr) {
    return __real_btf__find_by_name_kind_own(btf, name, kind);
  }
  if (const auto special = specialName(name, kind)) {
    return *special;
  }
  return vmlinux ? findInVmlinux(name, kind) : findInModule(*module, name, kind);
}

extern "C" int __wrap_bpf_prog_load(enum bpf_prog_type type, const char* name, const char* license,
                                    const struct bpf_insn* insns, size_t count, struct bpf_prog_load_opts* opts) {
  SeamScope* scope = state().scope;
  if (scope != nullptr && scope->isTrialProgram(type, name, count)) {
    if (const int anything = ::eventfd(0, EFD_CLOEXEC); anything >= 0) { // libbpf only closes it
      ++state().counters.trialsAnswered;
      return anything;
    }
  }
  // libbpf's own probes of the kernel give no name.
  if (scope == nullptr || name == nullptr) {
    return __real_bpf_prog_load(type, name, license, insns, count, opts);
  }
  if (const auto held = scope->heldProgram(name)) {
    const int duplicate = ::fcntl(held->get(), F_DUPFD_CLOEXEC, 3);
    return duplicate < 0 ? -errno : duplicate;
  }
  int result = __real_bpf_prog_load(type, name, license, insns, count, opts);
  if (result < 0 && errno == ENOSPC && opts != nullptr && opts->log_level != 0) {
    // The log did not fit; since Linux 6.4 the buffer holds its end. Ask again without a log for what really is wrong.
    opts->log_level = 0;
    result = __real_bpf_prog_load(type, name, license, insns, count, opts);
  } else if (result >= 0 && opts != nullptr) {
    keepVerifierLog(*scope, name, *opts);
  }
  if (result < 0) {
    scope->mutableReport().failedProgram = name;
    scope->mutableReport().failedFunctions = functionsOf(opts);
  }
  return result;
}

/// `type`, an enum for libbpf, is what the object has: in C++, no enum has values beyond its enumerators' bits.
extern "C" int __wrap_bpf_map_create(__u32 type, const char* name, __u32 keySize, __u32 valueSize, __u32 maxEntries,
                                     const struct bpf_map_create_opts* opts) {
  const int result = __real_bpf_map_create(type, name, keySize, valueSize, maxEntries, opts);
  if (SeamScope* scope = state().scope; scope != nullptr && name != nullptr) {
    // libbpf tries a refused map again without its BTF: a success takes the failure back.
    scope->mutableReport().failedMap = result < 0 ? std::optional<std::string>(name) : std::nullopt;
  }
  return result;
}

// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
