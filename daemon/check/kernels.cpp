#include "kernels.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include <sys/utsname.h>

namespace btfd::check {

namespace {

namespace fs = std::filesystem;

/// A file's name without what says how it is packed: "vmlinux" of "vmlinux.btf.xz".
std::string stemOf(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (const std::string_view suffix : {".gz", ".xz", ".btf", ".ko"}) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      name.resize(name.size() - suffix.size());
    }
  }
  return name;
}

/// What the kernel in `path` is called: by the file, or, where all are called vmlinux, by its directory.
std::string kernelName(const std::string& path) {
  std::error_code ignored;
  const fs::path absolute = fs::absolute(path, ignored).lexically_normal();
  if (absolute.parent_path() == kRunningKernel) {
    return runningKernelName();
  }
  const std::string stem = stemOf(path);
  const std::string directory = absolute.parent_path().filename().string();
  return stem == "vmlinux" && !directory.empty() ? directory : stem;
}

FoundKernel broken(std::string path, Error error) {
  return {.path = std::move(path), .kernel = std::unexpected(std::move(error)), .leftOut = {}};
}

FoundKernel readKernel(const std::string& path) {
  const auto bytes = readBtf(path);
  if (!bytes) {
    return broken(path, bytes.error());
  }
  if (isOfModule(*bytes)) {
    return broken(path,
                  {path + " holds only what a module adds to its kernel's BTF: name the directory that holds it and "
                          "the kernel's own",
                   EINVAL});
  }
  auto kernel = TargetKernel::make(kernelName(path), *bytes);
  if (!kernel) {
    return broken(path, std::move(kernel.error()).within(path));
  }
  return {.path = path, .kernel = std::shared_ptr<const TargetKernel>(std::move(*kernel)), .leftOut = {}};
}

/// How good a spelling of vmlinux is, where a directory has several of the same kernel: the smaller, the faster to
/// read.
std::size_t rankOf(const std::string& path) {
  constexpr std::array<std::string_view, 3> kBest{".btf", ".btf.gz", ".btf.xz"};
  const auto* found = std::ranges::find_if(kBest, [&](auto suffix) { return path.ends_with(suffix); });
  return static_cast<std::size_t>(found - kBest.begin());
}

/// Sorts what a directory holds into kernels and modules, and puts them together.
class Directory {
 public:
  explicit Directory(std::string path) : path_(std::move(path)) {}

  std::vector<FoundKernel> read() {
    if (auto listed = list(); !listed) {
      return one(broken(path_, std::move(listed.error())));
    }
    readVmlinux();
    for (const std::string& file : others_) {
      readOther(file);
    }
    if (kernels_.size() == 1) {
      addModules(*kernels_.front().kernel);
    } else {
      for (auto& [file, bytes] : modules_) {
        errors_.push_back(
            broken(file, {file + (kernels_.empty() ? " holds what a module adds to a kernel's BTF, but there "
                                                     "is no kernel's BTF beside it"
                                                   : " holds what a module adds to a kernel's BTF, but there "
                                                     "are several kernels beside it"),
                          EINVAL}));
      }
    }
    return result();
  }

 private:
  struct Kernel {
    std::string path;
    std::unique_ptr<TargetKernel> kernel;
  };

  struct Module {
    std::string path;
    BtfBytes bytes;
  };

  static std::vector<FoundKernel> one(FoundKernel kernel) {
    std::vector<FoundKernel> kernels;
    kernels.push_back(std::move(kernel));
    return kernels;
  }

  Result<void> list() {
    std::error_code error;
    for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
      const std::string file = at->path().string();
      std::error_code ignored;
      if (!at->is_regular_file(ignored)) {
        continue;
      }
      if (stemOf(file) == "vmlinux") {
        vmlinux_.push_back(file);
      } else if (isNamedAsBtf(file) || looksLikeBtf(file)) {
        others_.push_back(file);
      }
    }
    if (error) {
      return failErrno(path_, error.value());
    }
    std::ranges::sort(vmlinux_, {}, [](const std::string& file) { return std::pair(rankOf(file), file); });
    std::ranges::sort(others_);
    return {};
  }

  static bool isNamedAsBtf(std::string_view file) {
    constexpr std::array<std::string_view, 6> kSuffixes{".btf", ".btf.gz", ".btf.xz", ".ko", ".ko.gz", ".ko.xz"};
    return std::ranges::any_of(kSuffixes, [&](auto suffix) { return file.ends_with(suffix); });
  }

  /// All files called vmlinux are one kernel: the first that can be read.
  void readVmlinux() {
    std::vector<FoundKernel> failed;
    for (const std::string& file : vmlinux_) {
      auto bytes = readBtf(file);
      if (bytes && addKernel(file, *bytes, failed)) {
        return;
      }
      if (!bytes) {
        failed.push_back(broken(file, bytes.error()));
      }
    }
    std::ranges::move(failed, std::back_inserter(errors_));
  }

  bool addKernel(const std::string& file, const BtfBytes& bytes, std::vector<FoundKernel>& failed) {
    auto kernel = TargetKernel::make(kernelName(file), bytes);
    if (!kernel) {
      failed.push_back(broken(file, std::move(kernel.error()).within(file)));
      return false;
    }
    kernels_.push_back({.path = file, .kernel = std::move(*kernel)});
    return true;
  }

  void readOther(const std::string& file) {
    auto bytes = readBtf(file);
    if (!bytes) {
      errors_.push_back(broken(file, bytes.error()));
    } else if (isOfModule(*bytes)) {
      modules_.push_back({.path = file, .bytes = std::move(*bytes)});
    } else {
      addKernel(file, *bytes, errors_);
    }
  }

  void addModules(TargetKernel& kernel) {
    for (const Module& module : modules_) {
      if (auto added = kernel.addModule(stemOf(module.path), module.bytes); !added) {
        leftOut_.push_back(std::move(added.error()).within(module.path));
      }
    }
  }

  std::vector<FoundKernel> result() {
    std::vector<FoundKernel> found;
    found.reserve(kernels_.size() + errors_.size() + 1);
    for (Kernel& each : kernels_) {
      found.push_back({.path = std::move(each.path),
                       .kernel = std::shared_ptr<const TargetKernel>(std::move(each.kernel)),
                       .leftOut = std::move(leftOut_)});
    }
    std::ranges::move(errors_, std::back_inserter(found));
    if (found.empty()) {
      found.push_back(
          broken(path_, {path_ + " holds no kernel's BTF: no vmlinux, *.btf, *.btf.gz or *.btf.xz", ENOENT}));
    }
    return found;
  }

  std::string path_;
  std::vector<std::string> vmlinux_;
  std::vector<std::string> others_;
  std::vector<Kernel> kernels_;
  std::vector<Module> modules_;
  std::vector<Error> leftOut_;
  std::vector<FoundKernel> errors_;
};

} // namespace

std::string runningKernelName() {
  struct utsname system{};
  ::uname(&system);
  return "running (" + std::string(static_cast<const char*>(system.release)) + ")";
}

std::vector<FoundKernel> findKernels(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return Directory(path).read();
  }
  std::vector<FoundKernel> kernels;
  kernels.push_back(readKernel(path));
  return kernels;
}

} // namespace btfd::check
