// What is made for other kernels, on real objects: with minimized BTF libbpf writes the instructions that it writes
// with all of the kernel's, and a relocated object loads where the kernel shows no BTF at all. usage:
// btfd_offline_objects OBJECT...     Needs root: libbpf makes maps before it relocates.
#include "base/unique_fd.h"
#include "check/kernels.h"
#include "libbpf_code.h"
#include "object/opened_object.h"
#include "offline/minimized_btf.h"
#include "offline/relocated_object.h"
#include "test_support/files.h"

#include <bpf/libbpf.h>

#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace {

using namespace btfd;               // NOLINT
using namespace btfd::differential; // NOLINT

using object::ObjectHandle;

struct Tally {
  std::size_t minimized = 0;
  std::size_t loaded = 0;
  std::size_t differences = 0;
};

void differ(Tally& tally, const std::string& path, const std::string& what) {
  ++tally.differences;
  std::cout << "DIFFERENCE " << path << ": " << what << '\n';
}

ObjectHandle open(std::span<const std::byte> image, const char* kernelBtf) {
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.btf_custom_path = kernelBtf;
  options.object_name = "object";
  ObjectHandle object(bpf_object__open_mem(image.data(), image.size(), &options));
  bpf_map* map = nullptr;
  while (object && (map = bpf_object__next_map(object.get(), map)) != nullptr) {
    bpf_map__set_pin_path(map, nullptr);
  }
  return object;
}

/// Instructions after libbpf's relocation; nothing where it gives up.
std::optional<Code> prepare(std::span<const std::byte> image, const char* kernelBtf) {
  const ObjectHandle object = open(image, kernelBtf);
  if (!object || bpf_object__prepare(object.get()) != 0) {
    return std::nullopt;
  }
  return codeOf(*object);
}

bool same(const std::optional<Code>& left, const std::optional<Code>& right) {
  const auto equal = [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.size() == other.second.size() &&
           std::memcmp(one.second.data(), other.second.data(), one.second.size() * sizeof(bpf_insn)) == 0;
  };
  return left.has_value() == right.has_value() && (!left || std::ranges::equal(*left, *right, equal));
}

bool loads(std::span<const std::byte> image, const char* kernelBtf) {
  const ObjectHandle object = open(image, kernelBtf);
  return object && bpf_object__load(object.get()) == 0;
}

struct Given {
  std::string path;
  check::ObjectToCheck object;
};

std::vector<Given> readObjects(const std::vector<std::string>& paths) {
  std::vector<Given> given;
  for (const std::string& path : paths) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    auto object = check::ObjectToCheck::read(file);
    libbpf_set_print(nullptr);
    if (object) {
      given.push_back({path, std::move(*object)});
    }
  }
  return given;
}

/// Compares libbpf's instructions with all of the kernel's BTF and with the least of it, made for one object.
void tryMinimized(Tally& tally, const std::vector<Given>& objects, const check::TargetKernel& kernel) {
  for (const Given& each : objects) {
    if (each.object.records().empty()) {
      continue;
    }
    const auto minimized = offline::minimizeBtf(std::span(&each.object, 1), kernel);
    if (!minimized) {
      if (minimized.error().code != ENODATA) {
        differ(tally, each.path, minimized.error().message);
      }
      continue;
    }
    const UniqueFd file = test_support::memfdOf(minimized->btf);
    const std::string least = "/proc/self/fd/" + std::to_string(file.get());
    const auto whole = prepare(each.object.image(), "/sys/kernel/btf/vmlinux");
    if (!same(prepare(each.object.image(), least.c_str()), whole)) {
      differ(tally, each.path, "libbpf relocates it in another way with minimized BTF");
    }
    tally.minimized += whole ? 1 : 0;
    std::cout << each.path << ": " << minimized->types << " types, " << minimized->btf.size() << " bytes\n";
  }
}

struct Relocated {
  std::string path;
  std::vector<std::byte> image;
};

/// What loads as it is, needs kernel BTF for CO-RE and nothing else, and was relocated.
std::vector<Relocated> relocate(const std::vector<Given>& objects, const check::TargetKernel& kernel) {
  std::vector<Relocated> relocated;
  for (const Given& each : objects) {
    auto result = offline::relocateObject(each.object, kernel);
    if (result && each.object.records().needKernel() && result->needs.empty() && loads(each.object.image(), nullptr)) {
      relocated.push_back({each.path, std::move(result->image)});
    }
  }
  return relocated;
}

/// Loads them where no kernel BTF can be found: neither the kernel's own nor, at whatever place libbpf looks, a file.
void tryWithoutBtf(Tally& tally, const std::vector<Relocated>& objects, const std::vector<Given>& originals) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", "/sys/kernel/btf", "tmpfs", 0, nullptr) != 0) {
    std::cout << "the kernel's BTF cannot be hidden: " << std::strerror(errno) << '\n';
    ++tally.differences;
    return;
  }
  for (const Relocated& each : objects) {
    for (const char* kernelBtf : {static_cast<const char*>(nullptr), "/nonexistent"}) {
      if (!loads(each.image, kernelBtf)) {
        differ(tally, each.path, "it is relocated, and does not load without kernel BTF");
      }
    }
    ++tally.loaded;
    std::cout << each.path << ": loads without kernel BTF\n";
  }
  // Else the test would prove nothing.
  for (const Given& each : originals) {
    if (each.object.records().needKernel() && loads(each.object.image(), nullptr)) {
      differ(tally, each.path, "libbpf has found the kernel's BTF, which was to be hidden");
      return;
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  if (::geteuid() != 0) {
    std::cout << "making maps needs root\n";
    return 77;
  }
  libbpf_set_print(nullptr);
  // As libbpf does it with a file, without modules.
  const auto found = check::findKernels("/sys/kernel/btf/vmlinux");
  if (!found.front().kernel) {
    std::cout << found.front().kernel.error().message << '\n';
    return 77;
  }
  const check::TargetKernel& kernel = **found.front().kernel;
  const auto objects = readObjects({argv + 1, argv + argc});
  Tally tally;
  tryMinimized(tally, objects, kernel);
  tryWithoutBtf(tally, relocate(objects, kernel), objects);
  std::cout << objects.size() << " objects, " << tally.minimized << " with minimized BTF, " << tally.loaded
            << " loaded without, " << tally.differences << " differences\n";
  return tally.differences == 0 && tally.minimized > 0 && tally.loaded > 0 ? 0 : 1;
}
