#include "user_binary.h"

#include "object/opened_object.h"

#include <gelf.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>

#include <fcntl.h>
#include <libelf.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace btfd::loader {

namespace {

struct ElfDeleter {
  void operator()(Elf* elf) const { elf_end(elf); }
};

/// An ELF file that is open for reading.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ && elf_version(EV_CURRENT) != EV_NONE) {
      elf_.reset(elf_begin(file_.get(), ELF_C_READ_MMAP, nullptr));
    }
  }

  [[nodiscard]] Elf* get() const { return elf_.get(); }

  /// Calls `visit` with each section and its header.
  template <typename Visit>
  void eachSection(const Visit& visit) const {
    for (Elf_Scn* section = nullptr; elf_ && (section = elf_nextscn(elf_.get(), section)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) != nullptr) {
        visit(section, header);
      }
    }
  }

 private:
  UniqueFd file_;
  std::unique_ptr<Elf, ElfDeleter> elf_;
};

/// Functions by name, with their offset in the file (libbpf's elf_sym_offset).
std::map<std::string, unsigned long> functionsInTable(const ElfFile& file, GElf_Word type) {
  std::map<std::string, unsigned long> functions;
  file.eachSection([&](Elf_Scn* section, const GElf_Shdr& header) {
    Elf_Data* data = header.sh_type == type ? elf_getdata(section, nullptr) : nullptr;
    if (data == nullptr || header.sh_entsize == 0) {
      return;
    }
    const auto count = static_cast<int>(std::min<GElf_Xword>(data->d_size / header.sh_entsize, 10'000'000));
    for (int i = 0; i < count; ++i) {
      GElf_Sym symbol;
      GElf_Shdr code;
      if (gelf_getsym(data, i, &symbol) == nullptr || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
          symbol.st_shndx == SHN_UNDEF || gelf_getshdr(elf_getscn(file.get(), symbol.st_shndx), &code) == nullptr) {
        continue;
      }
      if (const char* name = elf_strptr(file.get(), header.sh_link, symbol.st_name); name != nullptr && *name != '\0') {
        functions.emplace(name, symbol.st_value - code.sh_addr + code.sh_offset);
      }
    }
  });
  return functions;
}

/// The text at `at` in `data`, up to its NUL character; `at` is moved behind that. Nothing if there is no such.
std::optional<std::string> takeText(std::string_view data, std::size_t& at) {
  const auto end = at < data.size() ? data.find('\0', at) : std::string_view::npos;
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  std::string text(data.substr(at, end - at));
  at = end + 1;
  return text;
}

/// Directories in which libbpf looks for what is named without a slash (its resolve_full_path).
std::vector<std::string> usualDirectories(std::string_view name) {
  if (!name.ends_with(".so") && !name.contains(".so.")) {
    return {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"};
  }
  struct utsname system{};
  ::uname(&system);
  const std::string architecture = std::string(system.machine) + "-linux-gnu"; // NOLINT: an array of the kernel's
  return {"/usr/lib64", "/usr/lib", "/lib/" + architecture, "/usr/lib/" + architecture, "/lib64", "/lib"};
}

UniqueFd openIn(const UniqueFd& root, const std::string& path) {
  struct open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof(how))));
}

bool isRegularFile(const UniqueFd& file) {
  struct stat status{};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

Result<UserBinary> findIn(const std::string& name, pid_t process) {
  const std::string number = std::to_string(process);
  const UniqueFd root(::open(("/proc/" + number + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root && errno == ENOENT) {
    return fail("there is no process " + number, ENOENT);
  }
  if (!root) {
    return failErrno(
        "the daemon may not look into the root directory of process " + number + " (that takes CAP_SYS_PTRACE)", errno);
  }
  std::vector<std::string> paths{name};
  if (!name.contains('/')) {
    paths = usualDirectories(name);
    std::ranges::transform(paths, paths.begin(), [&](const std::string& each) { return each + "/" + name; });
  }
  for (const std::string& path : paths) {
    if (UniqueFd file = openIn(root, path); file && isRegularFile(file)) {
      UserBinary binary{.name = path + " of process " + number, .path = {}, .file = std::move(file)};
      binary.path = "/proc/self/fd/" + std::to_string(binary.file.get());
      return binary;
    }
  }
  return fail("'" + name + "' is no program or library where process " + number + " sees files", ENOENT);
}

} // namespace

Result<UserBinary> findBinary(const std::string& name, std::optional<pid_t> rootOf) {
  if (rootOf) {
    return findIn(name, *rootOf);
  }
  // Opening a pipe would wait for ever.
  struct stat status{};
  if (name.contains('/') && (::stat(name.c_str(), &status) < 0 || !S_ISREG(status.st_mode))) {
    return fail("'" + name + "' is no program or library", ENOENT);
  }
  UserBinary binary{.name = name, .path = name, .file = {}};
  if (!name.contains('/')) {
    for (const std::string& directory : usualDirectories(name)) {
      const std::string path = directory + "/" + name;
      if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
        binary.path = path;
        return binary;
      }
    }
  }
  return binary;
}

std::vector<std::string> functionsIn(const UserBinary& binary) {
  const ElfFile file(binary.path);
  auto functions = functionsInTable(file, SHT_SYMTAB);
  if (functions.empty()) {
    functions = functionsInTable(file, SHT_DYNSYM);
  }
  std::vector<std::string> names;
  names.reserve(functions.size());
  for (auto& [name, offset] : functions) {
    names.push_back(name);
  }
  return names;
}

std::vector<unsigned long> offsetsOf(const UserBinary& binary, const std::vector<std::string>& functions) {
  const ElfFile file(binary.path);
  auto known = functionsInTable(file, SHT_DYNSYM);
  known.merge(functionsInTable(file, SHT_SYMTAB));
  std::vector<unsigned long> offsets;
  for (const std::string& function : functions) {
    const auto found = known.find(function);
    if (found == known.end()) {
      return {};
    }
    offsets.push_back(found->second);
  }
  return offsets;
}

std::vector<std::string> usdtProbesIn(const UserBinary& binary) {
  std::set<std::string> names;
  const ElfFile file(binary.path);
  file.eachSection([&](Elf_Scn* section, const GElf_Shdr& header) {
    Elf_Data* data = header.sh_type == SHT_NOTE ? elf_getdata(section, nullptr) : nullptr;
    if (data == nullptr || data->d_buf == nullptr) {
      return;
    }
    const std::string_view bytes(static_cast<const char*>(data->d_buf), data->d_size);
    GElf_Nhdr note;
    std::size_t nameAt = 0;
    std::size_t textAt = 0;
    for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &nameAt, &textAt)) > 0;) {
      constexpr GElf_Word kStapsdt = 3; // https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
      if (note.n_type != kStapsdt || bytes.substr(nameAt, note.n_namesz) != std::string_view("stapsdt\0", 8)) {
        continue;
      }
      // Three addresses, provider, name, arguments.
      const std::string_view description = bytes.substr(0, textAt + note.n_descsz);
      textAt += 3 * gelf_fsize(file.get(), ELF_T_ADDR, 1, EV_CURRENT);
      const auto provider = takeText(description, textAt);
      const auto name = takeText(description, textAt);
      if (provider && name) {
        names.insert(*provider + ":" + *name);
      }
    }
  });
  return {names.begin(), names.end()};
}

} // namespace btfd::loader
