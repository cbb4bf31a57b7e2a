#include "btfctl/check_view.h"
#include "btfctl/command.h"
#include "btfctl/object_file.h"
#include "btfctl/table.h"
#include "check/check_object.h"
#include "check/check_result.h"
#include "check/kernels.h"

#include <CLI/CLI.hpp>
#include <bpf/libbpf.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

namespace btfd::btfctl {
namespace {

class CheckCommand : public Command {
 public:
  explicit CheckCommand(CLI::App& parent)
      : Command(
            parent, "check", "Tell whether objects load on kernels, from their BTF alone",
            "  btfctl check tcpconnect.o\n"
            "      on the running kernel; needs neither privileges nor the daemon\n"
            "  btfctl check *.o --kernel btf/5.10.btf.xz btf/6.1.btf.gz /usr/lib/debug/boot/vmlinux-6.12\n"
            "      on kernels in files: raw BTF, also compressed with gzip or xz, or ELF files with a .BTF section\n"
            "  btfctl check *.o --kernel btf/\n"
            "      on all kernels in a directory and those below; BTF of modules beside or below a kernel belongs to "
            "it, as "
            "in\n      /sys/kernel/btf\n"
            "  btfctl check x.o --kernel btf/ --json | jq '.objects[] | select(any(.reports[]; .verdict == \"fails\")) "
            "| .name'\n"
            "  btfctl check *.o --kernel btf/ --strict && roll-out\n"
            "\nVerdicts:\n"
            "  loads    nothing in BTF stands in its way\n"
            "  warning  it loads, but something in it cannot work, such as a tracepoint that the kernel lacks\n"
            "  unknown  BTF does not tell, such as of a function for a kprobe that is not among those it has\n"
            "  fails    the kernel or the loader refuses it\n"
            "An object that cannot be read is: unreadable.\n"
            "The reasons stand below the table; with --verbose also what is only good to know: code that is guarded "
            "and "
            "never\nreached, and targets that are not looked at. What no BTF tells is not checked: the verifier's "
            "opinion of the code,\nuprobes, categories of tracepoints, which functions may be probed.\n"
            "\nExit status:\n"
            "  0  no verdict is fails; with --strict: all load\n"
            "  1  one is; with --strict: or one is warning or unknown, or a module of a kernel was left out as it "
            "cannot be "
            "read\n"
            "  2  the command line is wrong, or an object or a kernel cannot be read\n") {
    app().add_option("OBJECT", objects_, "Object files")->type_name("")->required()->expected(1, kAny);
    app()
        .add_option("--kernel", kernels_, "Kernels to check on, else the running one; to stand behind the objects")
        ->type_name("FILE|DIR...")
        ->expected(1, kAny);
    flag("--strict", strict_, "Exit with 1 unless every verdict is: loads");
  }

  [[nodiscard]] std::string subject() const override { return "check"; }

  Outcome<int> run(const Context& context) override {
    libbpf_set_print(nullptr); // what it would say is said by us
    const auto kernels = findKernels();
    check::CheckResult result;
    result.kernels = describe(kernels);
    for (const std::string& path : objects_) {
      result.objects.push_back(checkOn(path, kernels, {.allRelocations = context.json}));
    }
    nameObjects(result.objects);
    context.print(toJson(result), checkView(result, context.verbose, terminalWidth()));
    if (!context.json) {
      context.errors << unreadableView(result) << std::flush;
    }
    return static_cast<int>(statusOf(result));
  }

 private:
  static constexpr int kAny = 100'000;

  [[nodiscard]] std::vector<check::FoundKernel> findKernels() const {
    std::vector<check::FoundKernel> found;
    const std::vector<std::string> running{check::kRunningKernel};
    for (const std::string& path : kernels_.empty() ? running : kernels_) {
      std::ranges::move(check::findKernels(path), std::back_inserter(found));
    }
    return found;
  }

  static std::vector<check::CheckedKernel> describe(const std::vector<check::FoundKernel>& kernels) {
    std::vector<std::string> names;
    std::vector<std::string> paths;
    std::vector<check::CheckedKernel> described;
    for (const check::FoundKernel& each : kernels) {
      names.push_back(each.kernel ? (*each.kernel)->name() : each.path);
      paths.push_back(each.path);
      check::CheckedKernel& kernel = described.emplace_back();
      kernel.path = each.path;
      kernel.leftOut = each.leftOut;
      if (each.kernel) {
        kernel.modules = (*each.kernel)->targets().size() - 1;
      } else {
        kernel.error = each.kernel.error();
      }
    }
    names = distinctNames(names, paths);
    for (std::size_t i = 0; i < described.size(); ++i) {
      described[i].name = std::move(names[i]);
    }
    return described;
  }

  static void nameObjects(std::vector<check::CheckedObject>& objects) {
    std::vector<std::string> names;
    std::vector<std::string> paths;
    for (const check::CheckedObject& object : objects) {
      names.push_back(std::filesystem::path(object.path).filename().string());
      paths.push_back(object.path);
    }
    names = distinctNames(names, paths);
    for (std::size_t i = 0; i < objects.size(); ++i) {
      objects[i].name = std::move(names[i]);
    }
  }

  static check::CheckedObject checkOn(const std::string& path, const std::vector<check::FoundKernel>& kernels,
                                      const check::CheckOptions& options) {
    check::CheckedObject checked;
    checked.path = path;
    const auto object = readObject(path);
    if (!object) {
      checked.error = object.error();
      return checked;
    }
    for (const check::FoundKernel& kernel : kernels) {
      if (kernel.kernel) {
        checked.reports.push_back(check::checkObject(*object, **kernel.kernel, options));
      }
    }
    return checked;
  }

  [[nodiscard]] ExitStatus statusOf(const check::CheckResult& result) const {
    if (result.isAnythingUnreadable()) {
      return ExitStatus::Usage;
    }
    if (strict_ && (result.worst() > check::Verdict::loads || result.isAnyModuleLeftOut())) {
      return ExitStatus::Failed;
    }
    return result.worst() > check::Verdict::unknown ? ExitStatus::Failed : ExitStatus::Done;
  }

  std::vector<std::string> objects_;
  std::vector<std::string> kernels_;
  bool strict_ = false;
};

} // namespace

std::unique_ptr<Command> checkCommand(CLI::App& parent) {
  return std::make_unique<CheckCommand>(parent);
}

} // namespace btfd::btfctl
