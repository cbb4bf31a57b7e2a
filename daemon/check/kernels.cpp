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

/// How many levels of directories below one that is named are looked into: enough for a tree of kernels by
/// distribution, release and architecture, and for /lib/modules.
constexpr unsigned kMostLevels = 8;

/// What the kernel in `path` is called: by the file, or, where all are called vmlinux, by its directory, or
/// by that of a directory btf.
std::string kernelName(const std::string& path) {
  std::error_code ignored;
  const fs::path absolute = fs::absolute(path, ignored).lexically_normal();
  if (absolute.parent_path() == kRunningKernel) {
    return runningKernelName();
  }
  const std::string stem = stemOf(path);
  const fs::path parent = absolute.parent_path();
  const std::string directory = (parent.filename() == "btf" ? parent.parent_path() : parent).filename().string();
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

/// What a module adds to some kernel.
struct Module {
  std::string path;
  BtfBytes bytes;
};

/// What a directory and those below it hold.
struct Contents {
  std::vector<FoundKernel> kernels;
  /// Modules that no kernel has been found for.
  std::vector<Module> modules;
};

/// Sorts what a directory holds into kernels and modules, and puts them together.
class Directory {
 public:
  /// `levels`: how many of directories below it are looked into.
  Directory(std::string path, unsigned levels) : path_(std::move(path)), levels_(levels) {}

  Contents read() {
    if (auto listed = list(); !listed) {
      errors_.push_back(broken(path_, std::move(listed.error())));
      return contents();
    }
    readVmlinux();
    for (const std::string& file : others_) {
      readOther(file);
    }
    for (const std::string& directory : directories_) {
      Contents below = Directory(directory, levels_ - 1).read();
      std::ranges::move(below.kernels, std::back_inserter(below_));
      std::ranges::move(below.modules, std::back_inserter(modules_));
    }
    if (kernels_.size() == 1) {
      addModules(*kernels_.front().kernel);
    } else if (!kernels_.empty()) {
      refuseModules(std::exchange(modules_, {}), "there are several kernels beside it", errors_);
    }
    return contents();
  }

  static void refuseModules(const std::vector<Module>& modules, const std::string& why,
                            std::vector<FoundKernel>& errors) {
    for (const Module& module : modules) {
      errors.push_back(
          broken(module.path, {module.path + " holds what a module adds to a kernel's BTF, but " + why, EINVAL}));
    }
  }

 private:
  struct Kernel {
    std::string path;
    std::unique_ptr<TargetKernel> kernel;
  };

  Result<void> list() {
    std::error_code error;
    for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
      const std::string file = at->path().string();
      std::error_code ignored;
      if (at->symlink_status(ignored).type() == fs::file_type::directory) { // no links: they may lead round in circles
        directories_.push_back(file);
      } else if (!at->is_regular_file(ignored)) {
        continue;
      } else if (stemOf(file) == "vmlinux") {
        vmlinux_.push_back(file);
      } else if (isNamedAsBtf(file) || looksLikeBtf(file)) {
        others_.push_back(file);
      }
    }
    if (error) {
      return failErrno(path_, error.value());
    }
    if (levels_ == 0) {
      directories_.clear();
    }
    std::ranges::sort(vmlinux_, {}, [](const std::string& file) { return std::pair(rankOf(file), file); });
    std::ranges::sort(others_);
    std::ranges::sort(directories_);
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
    for (const Module& module : std::exchange(modules_, {})) {
      if (auto added = kernel.addModule(stemOf(module.path), module.bytes); !added) {
        leftOut_.push_back(std::move(added.error()).within(module.path));
      }
    }
  }

  Contents contents() {
    Contents all;
    for (Kernel& each : kernels_) {
      all.kernels.push_back({.path = std::move(each.path),
                             .kernel = std::shared_ptr<const TargetKernel>(std::move(each.kernel)),
                             .leftOut = std::move(leftOut_)});
    }
    std::ranges::move(errors_, std::back_inserter(all.kernels));
    std::ranges::move(below_, std::back_inserter(all.kernels));
    all.modules = std::move(modules_);
    return all;
  }

  std::string path_;
  unsigned levels_ = 0;
  std::vector<std::string> vmlinux_;
  std::vector<std::string> others_;
  std::vector<std::string> directories_;
  std::vector<Kernel> kernels_;
  /// Those here, and those below that no kernel there is for.
  std::vector<Module> modules_;
  std::vector<Error> leftOut_;
  std::vector<FoundKernel> errors_;
  /// What directories below this one hold.
  std::vector<FoundKernel> below_;
};

std::vector<FoundKernel> readDirectory(const std::string& path) {
  Contents contents = Directory(path, kMostLevels).read();
  Directory::refuseModules(contents.modules, "there is no kernel's BTF beside it or in a directory above",
                           contents.kernels);
  if (contents.kernels.empty()) {
    contents.kernels.push_back(
        broken(path, {path + " holds no kernel's BTF: no vmlinux, *.btf, *.btf.gz or *.btf.xz", ENOENT}));
  }
  return std::move(contents.kernels);
}

} // namespace

std::string runningKernelName() {
  struct utsname system{};
  ::uname(&system);
  return "running (" + std::string(static_cast<const char*>(system.release)) + ")";
}

std::vector<FoundKernel> findKernels(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    return readDirectory(path);
  }
  std::vector<FoundKernel> kernels;
  kernels.push_back(readKernel(path));
  return kernels;
}

} // namespace btfd::check
