#include "kernel_functions.h"

#include "base/near_misses.h"
#include "base/text.h"
#include "kernel_names.h"

#include <bpf/btf.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <set>
#include <unordered_set>
#include <utility>

#include <unistd.h>

namespace btfd::loader {

namespace {

/// The next word of a line, which is taken off it.
std::string_view takeWord(std::string_view& line) {
  constexpr std::string_view kSpace = " \t";
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kSpace));
  line.remove_prefix(word.size());
  return word;
}

std::uint64_t readAddress(std::string_view text) {
  text.remove_prefix(text.starts_with("0x") ? 2 : 0);
  std::uint64_t address = 0;
  std::from_chars(text.data(), text.data() + text.size(), address, 16);
  return address;
}

/// "[module]" without its brackets.
std::string_view readModule(std::string_view word) {
  return word.starts_with('[') && word.ends_with(']') ? word.substr(1, word.size() - 2) : std::string_view{};
}

/// Calls `visit` with each line of a file. False if there are none.
bool eachLine(const std::string& path, const std::function<void(std::string_view)>& visit) {
  std::ifstream file(path);
  bool any = false;
  for (std::string line; std::getline(file, line);) {
    any = true;
    visit(line);
  }
  return any;
}

using Visitor = std::function<void(std::string_view name, std::string_view module, std::uint64_t address)>;

/// Functions in a file as /proc/kallsyms: "ffffffff81000000 T name", with "\t[module]" behind those of modules
/// (kernel/kallsyms.c, s_show).
bool eachSymbol(const std::string& path, const Visitor& visit) {
  return eachLine(path, [&](std::string_view line) {
    const std::string_view address = takeWord(line);
    const std::string_view type = takeWord(line);
    const std::string_view name = takeWord(line);
    if (type == "t" || type == "T" || type == "w" || type == "W") {
      visit(name, readModule(takeWord(line)), readAddress(address));
    }
  });
}

/// Functions that ftrace can trace (kernel/trace/ftrace.c, t_show): with addresses since Linux 6.5.
bool eachTraceable(const KernelFunctionFiles& files, const Visitor& visit) {
  const std::string list = tracefsRoot(files.tracefs) + "/available_filter_functions";
  const bool withAddresses = eachLine(list + "_addrs", [&](std::string_view line) {
    const std::string_view address = takeWord(line);
    const std::string_view name = takeWord(line);
    visit(name, readModule(takeWord(line)), readAddress(address));
  });
  return withAddresses || eachLine(list, [&](std::string_view line) {
           const std::string_view name = takeWord(line);
           visit(name, readModule(takeWord(line)), 0);
         });
}

/// A name that may stand behind its module's.
struct Sought {
  std::string_view module;
  std::string_view name;

  explicit Sought(std::string_view text) : name(text.substr(text.find(':') + 1)) { // npos + 1 is 0
    module = text.substr(0, text.size() - name.size());
    module.remove_suffix(module.empty() ? 0 : 1);
  }

  [[nodiscard]] bool is(std::string_view function, std::string_view ofModule) const {
    return name == function && (module.empty() || module == ofModule);
  }
};

/// What the compiler has made of function `name` in its place: "name.isra.0", "name.constprop.0" and so on.
std::vector<std::string> variantsOf(std::string_view name, const KernelFunctionFiles& files) {
  std::set<std::string> variants;
  const std::string beginning = std::string(Sought(name).name) + ".";
  eachSymbol(files.symbols, [&](std::string_view function, std::string_view, std::uint64_t) {
    if (function.starts_with(beginning)) {
      variants.emplace(function);
    }
  });
  return {variants.begin(), variants.end()};
}

std::string explainVariants(std::vector<std::string> variants) {
  const auto isCold = [](const std::string& name) { return name.contains(".cold"); };
  const bool onlyCold = std::ranges::all_of(variants, isCold);
  if (!onlyCold) {
    std::erase_if(variants, isCold);
  }
  constexpr std::size_t kMost = 4;
  const bool more = variants.size() > kMost;
  variants.resize(std::min(variants.size(), kMost));
  return onlyCold ? " but only the part of it that hardly ever runs, " + joined(variants) +
                        "; the rest has been inlined into its callers"
                  : " but what the compiler made of it: " + joined(variants) + (more ? " and more" : "") +
                        "; these names can be probed instead, and are others in another build of the kernel";
}

std::string whyMissing(const std::string& name, const KernelFunctionFiles& files) {
  std::string text = "the kernel has no function '" + name + "'";
  if (auto variants = variantsOf(name, files); !variants.empty()) {
    return text + explainVariants(std::move(variants));
  }
  const std::string_view module = Sought(name).module;
  return text + kernelNamesLike(Sought(name).name, "", BTF_KIND_FUNC) +
         (module.empty() ? "" : "; module " + std::string(module) + " has none, or is not loaded");
}

/// Whether the kernel forbids kprobes in this function: "0xffffffff81000000-0xffffffff81000020\tname"
/// (kernel/kprobes.c, kprobe_blacklist_seq_show).
bool isBlacklisted(const std::string& name, const KernelFunctionFiles& files) {
  bool found = false;
  eachLine(files.blacklist, [&](std::string_view line) {
    takeWord(line);
    found = found || takeWord(line) == Sought(name).name;
  });
  return found;
}

/// The first of `names` that ftrace cannot trace; empty where it can trace all, or does not tell.
std::string firstUntraceable(std::span<const std::string> names, const KernelFunctionFiles& files) {
  std::vector<Sought> left;
  std::ranges::transform(names, std::back_inserter(left), [](const std::string& name) { return Sought(name); });
  std::unordered_set<std::string_view> wanted;
  for (const Sought& sought : left) {
    wanted.insert(sought.name);
  }
  const bool told = eachTraceable(files, [&](std::string_view function, std::string_view module, std::uint64_t) {
    if (wanted.contains(function)) {
      std::erase_if(left, [&](const Sought& sought) { return sought.is(function, module); });
    }
  });
  return told && !left.empty() ? std::string(left.front().name) : std::string();
}

/// Why functions that are there cannot be probed, or nothing.
std::string whyUnfit(std::span<const std::string> names, ProbeForm form, const KernelFunctionFiles& files) {
  if (form == ProbeForm::multi) {
    const std::string name = firstUntraceable(names, files);
    return name.empty()
               ? std::string()
               : "function '" + name +
                     "' cannot be traced by ftrace, which carries such a link (it is notrace, or assembly; see "
                     "available_filter_functions in tracefs)";
  }
  for (const std::string& name : names) {
    if (isBlacklisted(name, files)) {
      return "function '" + name + "' is one that the kernel allows no kprobes in (" + files.blacklist + ")";
    }
  }
  return {};
}

std::string explainDuplicates(const std::string& name, const KernelFunctionFiles& files) {
  const auto count = functionsNamed(std::span(&name, 1), files).size();
  return count < 2 ? std::string()
                   : "the kernel has " + std::to_string(count) + " functions of the name '" + name +
                         "', and a kprobe is for one; module:function names one of a module's, and a program in "
                         "section kprobe.multi with a pattern takes all of them";
}

} // namespace

const std::string& tracefsRoot(const TracefsPlaces& places) {
  return ::access(places.debugfs.c_str(), F_OK) == 0 ? places.debugfs : places.tracefs;
}

bool matchesPattern(std::string_view name, std::string_view pattern) {
  // When a character does not fit, the last '*' takes one more: that is enough, and takes the product of the lengths
  // at most.
  std::size_t at = 0;
  std::size_t inPattern = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  while (at < name.size()) {
    if (inPattern < pattern.size() && pattern[inPattern] == '*') {
      star = inPattern++;
      taken = at;
    } else if (inPattern < pattern.size() && (pattern[inPattern] == '?' || pattern[inPattern] == name[at])) {
      ++inPattern;
      ++at;
    } else if (star != std::string_view::npos) {
      inPattern = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', inPattern) == std::string_view::npos;
}

bool isPattern(std::string_view name) {
  return name.find_first_of("*?") != std::string_view::npos;
}

std::vector<KernelFunction> functionsLike(std::string_view pattern, const KernelFunctionFiles& files) {
  std::vector<KernelFunction> found;
  std::unordered_set<std::string> names;
  const auto add = [&](std::string_view name, std::string_view module, std::uint64_t address) {
    if (matchesPattern(name, pattern)) {
      names.emplace(name);
      found.push_back({.name = std::string(name), .module = std::string(module), .address = address});
    }
  };
  const bool told = eachTraceable(files, add);
  if (told && std::ranges::all_of(found, [](const KernelFunction& each) { return each.address != 0; })) {
    return found;
  }
  // Without addresses: those in the table of symbols.
  found.clear();
  eachSymbol(files.symbols, [&](std::string_view name, std::string_view module, std::uint64_t address) {
    if (!told || names.contains(std::string(name))) {
      add(name, module, address);
    }
  });
  return found;
}

std::vector<KernelFunction> functionsNamed(std::span<const std::string> names, const KernelFunctionFiles& files) {
  std::unordered_set<std::string_view> wanted;
  for (const std::string& name : names) {
    wanted.insert(Sought(name).name);
  }
  std::vector<KernelFunction> found;
  eachSymbol(files.symbols, [&](std::string_view function, std::string_view module, std::uint64_t address) {
    if (wanted.contains(function) &&
        std::ranges::any_of(names, [&](const std::string& name) { return Sought(name).is(function, module); })) {
      found.push_back({.name = std::string(function), .module = std::string(module), .address = address});
    }
  });
  return found;
}

std::string firstMissing(std::span<const std::string> names, const KernelFunctionFiles& files) {
  const auto found = functionsNamed(names, files);
  if (found.empty() && !eachLine(files.symbols, [](std::string_view) {})) {
    return {};
  }
  const auto missing = std::ranges::find_if(names, [&](const std::string& name) {
    return std::ranges::none_of(found,
                                [&](const KernelFunction& each) { return Sought(name).is(each.name, each.module); });
  });
  return missing == names.end() ? std::string() : *missing;
}

bool kernelHasFunction(std::string_view name, const KernelFunctionFiles& files) {
  const std::string wanted(name);
  return name.empty() ? !eachLine(files.symbols, [](std::string_view) {})
                      : firstMissing(std::span(&wanted, 1), files).empty();
}

bool kernelHasKprobes() {
  return ::access("/sys/bus/event_source/devices/kprobe/type", F_OK) == 0;
}

std::string whyNoKernelFunction(std::span<const std::string> names, int code, ProbeForm form,
                                const KernelFunctionFiles& files, bool hasKprobes) {
  if (form == ProbeForm::single && !hasKprobes && code != EPERM && code != EACCES) {
    return "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)";
  }
  switch (code) {
  case ENOENT:
  case ESRCH:
  case EINVAL:
    if (const std::string missing = firstMissing(names, files); !missing.empty()) {
      return whyMissing(missing, files);
    }
    return whyUnfit(names, form, files);
  case EADDRNOTAVAIL: // number_of_same_symbols in kernel/trace/trace_kprobe.c, since Linux 6.7
    return explainDuplicates(names.front(), files);
  case EILSEQ:
    return "the offset is in the midst of an instruction";
  case EOPNOTSUPP:
    return form == ProbeForm::multi ? "this kernel has no kprobe.multi (since Linux 5.18, with CONFIG_FPROBE)"
                                    : whyUnfit(names, form, files);
  default:
    return {};
  }
}

std::string whyNoneLike(std::string_view pattern, const KernelFunctionFiles& files) {
  const std::string& root = tracefsRoot(files.tracefs);
  if (::access((root + "/available_filter_functions").c_str(), R_OK) == 0) {
    return "no function of the kernel that can be traced is like '" + std::string(pattern) + "'";
  }
  return "no function of the kernel is like '" + std::string(pattern) + "'";
}

std::string whyNoSystemCall(std::string_view name, const KernelFunctionFiles& files) {
  // As "__x64_sys_getppid"; kernels without CONFIG_ARCH_HAS_SYSCALL_WRAPPER have "__se_sys_getppid".
  std::vector<std::string> known;
  eachSymbol(files.symbols, [&](std::string_view function, std::string_view, std::uint64_t) {
    const auto at = function.find("_sys_");
    if (function.starts_with("__") && at != std::string_view::npos && at <= std::string_view("__powerpc").size()) {
      known.emplace_back(function.substr(at + std::string_view("_sys_").size()));
    }
  });
  return std::ranges::find(known, name) != known.end()
             ? std::string()
             : "the kernel has no system call '" + std::string(name) + "'" + didYouMean(nearMisses(name, known));
}

} // namespace btfd::loader
