#include "kernel_spec.h"

#include "base/read_file.h"
#include "base/unique_fd.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace btfd::btf {

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::microseconds since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
}

/// Whether `address` lies in a mapping of the file at `path`, by /proc/self/maps (proc(5)). libbpf's
/// btf__load_vmlinux_btf maps where it can and reads elsewhere, but does not say which.
bool isMappedFrom(const void* address, const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(path)) {
      continue;
    }
    std::istringstream fields(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    fields >> std::hex >> begin >> dash >> end;
    const auto wanted =
        reinterpret_cast<std::uintptr_t>(address); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    if (wanted >= begin && wanted < end) {
      return true;
    }
  }
  return false;
}

std::span<const std::byte> rawBytes(const struct ::btf& btf) {
  std::uint32_t size = 0;
  const auto* data = static_cast<const std::byte*>(btf__raw_data(&btf, &size));
  return {data, size};
}

Result<std::vector<std::byte>> readFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return failErrno("it cannot be opened", errno);
  }
  auto content = readAll(file);
  return content ? std::move(content) : failErrno("it cannot be read", content.error().code);
}

/// BTF that libbpf has read, unless it can have misunderstood it: then it is parsed anew.
Result<ParsedBtf> checked(BtfHandle btf) {
  ParsedBtf parsed{.btf = {}, .layouts = {}};
  const auto readable = readableBtf(rawBytes(*btf), parsed.layouts);
  if (!readable || *readable) {
    return parseBtf(rawBytes(*btf));
  }
  parsed.btf = std::move(btf);
  return parsed;
}

/// Parses raw BTF or that of an ELF file.
Result<ParsedBtf> parseFile(const std::string& path) {
  if (BtfHandle btf(btf__parse_elf(path.c_str(), nullptr)); btf) {
    return checked(std::move(btf));
  }
  const auto bytes = readFile(path);
  return bytes ? parseBtf(*bytes) : std::unexpected(bytes.error());
}

} // namespace

std::uint32_t ModuleBtf::typeCount(const struct ::btf& vmlinux) const {
  return btf ? btf__type_cnt(btf.get()) - btf__type_cnt(&vmlinux) : 0;
}

std::vector<std::pair<std::string, std::uint64_t>> listModules(const std::string& directory) {
  std::vector<std::pair<std::string, std::uint64_t>> modules;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (auto name = entry.path().filename().string(); name != "vmlinux") {
      std::error_code noSize;
      const auto size = entry.file_size(noSize);
      modules.emplace_back(std::move(name), noSize ? 0 : size);
    }
  }
  std::ranges::sort(modules);
  return modules;
}

Result<std::shared_ptr<const KernelSpec>> KernelSpec::build(const KernelSpecSource& source, std::uint64_t generation) {
  std::shared_ptr<KernelSpec> spec(new KernelSpec); // NOLINT: make_shared cannot reach the private constructor
  spec->generation_ = generation;
  if (auto loaded = spec->loadVmlinux(source); !loaded) {
    return std::unexpected(std::move(loaded.error()));
  }
  if (source.modules) {
    spec->loadModules(source.directory);
  }
  spec->builtAt_ = std::chrono::system_clock::now();
  return spec;
}

Result<ParsedBtf> KernelSpec::parseVmlinux(const KernelSpecSource& source) {
  path_ = source.directory + "/vmlinux";
  const bool shownByKernel = ::access(path_.c_str(), F_OK) == 0;
  if (shownByKernel && source.directory == KernelSpecSource{}.directory) {
    // The only public way to have libbpf map instead of copy.
    if (BtfHandle btf(btf__load_vmlinux_btf()); btf) {
      return checked(std::move(btf));
    }
  }
  if (!shownByKernel) {
    if (source.fallbackPath.empty()) {
      return fail("this kernel shows no BTF: there is no " + path_ +
                      " (is CONFIG_DEBUG_INFO_BTF set?), and kernelBtf.path names no file to use instead",
                  ENOENT);
    }
    path_ = source.fallbackPath;
  }
  auto parsed = parseFile(path_);
  if (!parsed) {
    return std::unexpected(std::move(parsed.error()).within("cannot read kernel BTF from " + path_));
  }
  return parsed;
}

Result<void> KernelSpec::loadVmlinux(const KernelSpecSource& source) {
  const auto start = Clock::now();
  auto vmlinux = parseVmlinux(source);
  if (!vmlinux) {
    return std::unexpected(std::move(vmlinux.error()));
  }
  vmlinux_ = std::move(vmlinux->btf);
  layouts_ = std::move(vmlinux->layouts);
  mapped_ = isMappedFrom(rawBytes(*vmlinux_).data(), path_);
  // libbpf takes an empty BTF for valid, but there is nothing to relocate against.
  if (btf__type_cnt(vmlinux_.get()) <= 1) {
    return fail("kernel BTF in " + path_ + " holds no types", EINVAL);
  }
  parseDuration_ = since(start);
  const auto parsed = Clock::now();
  index_ = NameIndex(*vmlinux_, 1);
  indexDuration_ = since(parsed);
  return {};
}

void KernelSpec::loadModules(const std::string& directory) {
  const auto start = Clock::now();
  const std::uint32_t firstId = btf__type_cnt(vmlinux_.get());
  for (auto& [name, bytes] : listModules(directory)) {
    ModuleBtf module{.name = name, .bytes = bytes, .btf = nullptr, .index = {}, .error = {}};
    const auto content = readFile(directory + "/" + name);
    auto parsed = content ? parseBtf(*content, vmlinux_.get(), layouts_) : std::unexpected(content.error());
    if (parsed) {
      module.btf = std::move(parsed->btf);
      module.index = NameIndex(*module.btf, firstId);
    } else {
      module.error = "cannot be parsed: " + parsed.error().message;
    }
    modules_.push_back(std::move(module));
  }
  parseDuration_ += since(start);
}

const ModuleBtf* KernelSpec::findModule(std::string_view name) const {
  const auto found = std::ranges::lower_bound(modules_, name, {}, &ModuleBtf::name);
  return found != modules_.end() && found->name == name && found->btf ? &*found : nullptr;
}

std::uint64_t KernelSpec::vmlinuxBytes() const {
  return rawBytes(*vmlinux_).size();
}

std::uint64_t KernelSpec::privateBytes() const {
  // libbpf keeps a 4-byte offset for each type beside the bytes (btf.c, type_offs).
  std::uint64_t total = index_.bytes() + std::uint64_t{btf__type_cnt(vmlinux_.get())} * sizeof(std::uint32_t);
  if (!mapped_) {
    total += vmlinuxBytes();
  }
  for (const ModuleBtf& module : modules_) {
    if (module.btf) {
      total += module.bytes + module.index.bytes() + std::uint64_t{module.typeCount(*vmlinux_)} * sizeof(std::uint32_t);
    }
  }
  return total;
}

} // namespace btfd::btf
