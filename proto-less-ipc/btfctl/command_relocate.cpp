#include "btfctl/command.h"
#include "btfctl/kernel_choice.h"
#include "btfctl/object_file.h"
#include "btfctl/output_file.h"
#include "btfctl/relocate_view.h"

#include <CLI/CLI.hpp>
#include <bpf/libbpf.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <utility>

namespace btfd::btfctl {
namespace {

class RelocateCommand : public Command {
 public:
  explicit RelocateCommand(CLI::App& parent)
      : Command(
            parent, "relocate", "Write an object that needs no kernel BTF for CO-RE, for one kernel",
            "  btfctl relocate tcpconnect.o --kernel 4.19.btf.xz -o tcpconnect-4.19.o\n"
            "      for a kernel that has no BTF itself; any libbpf loads the result there, without BTF\n"
            "  btfctl relocate tcpconnect.o --kernel btf/6.1/ -o out.o\n"
            "      for a kernel in a directory, with the BTF of its modules; kernels are given as for btfctl check\n"
            "  btfctl relocate tcpconnect.o -o out.o\n"
            "      for the running kernel; needs neither privileges nor the daemon\n"
            "  btfctl relocate tcpconnect.o --in-place --json | jq .needsKernelBtf\n"
            "  btfctl relocate - --kernel 4.19.btf -o - < tcpconnect.o | xz > tcpconnect.o.xz\n"
            "\nAll CO-RE relocations are applied and their records dropped; nothing else in the file changes. What "
            "the\nkernel lacks is poisoned, as libbpf does it: it does no harm in code that is never reached.\n"
            "fentry, fexit, LSM, tp_btf, iterator and struct_ops programs and typed kernel symbols need the "
            "kernel's\nown BTF for other reasons, and still do: the command says so.\n"
            "\nExit status:\n"
            "  0  written\n"
            "  1  a relocation fails, or, with --strict, an instruction would be poisoned, or OUT cannot be written; "
            "OUT is "
            "as it was\n"
            "  2  the command line is wrong, or the object or the kernel cannot be read\n") {
    argument("OBJECT", object_, "Object file; - for standard input");
    option("--kernel", "FILE|DIR", kernel_, "The kernel's BTF, else the running kernel's");
    option("--output,-o", "OUT", output_, "File to write; - for standard output");
    flag("--in-place", inPlace_, "Write over OBJECT");
    flag("--strict", strict_, "Write nothing, and exit with 1, if any instruction would be poisoned");
  }

  [[nodiscard]] std::string subject() const override { return "relocate " + object_; }

  Outcome<int> run(const Context& context) override {
    libbpf_set_print(nullptr); // what it would say is said by us
    if (auto checked = checkOutput(context); !checked) {
      return std::unexpected(std::move(checked.error()));
    }
    const auto kernel = chooseKernel(kernel_, output_);
    if (!kernel) {
      return std::unexpected(kernel.error());
    }
    const auto file = openObject(object_);
    if (!file) {
      return misused(file.error());
    }
    const auto object = check::ObjectToCheck::read(*file);
    if (!object) {
      return misused(object.error());
    }
    const auto relocated = offline::relocateObject(*object, *kernel->kernel);
    if (!relocated) {
      return std::unexpected(relocationFailure(relocated.error(), kernel->kernel->name()));
    }
    if (strict_ && !relocated->poisoned.empty()) {
      return std::unexpected(relocationFailure(relocated->poisoned, kernel->kernel->name()));
    }
    if (auto written = writeOutput(output_, relocated->image, context.out); !written) {
      return failed(ExitStatus::Failed, written.error().message);
    }
    report(context, *kernel, *relocated);
    return static_cast<int>(ExitStatus::Done);
  }

 private:
  /// Decides what is written to, before anything is done.
  Outcome<void> checkOutput(const Context& context) {
    if (inPlace_ != output_.empty()) {
      return failed(ExitStatus::Usage, "say where to write: either -o OUT or --in-place");
    }
    if (inPlace_ && object_ == "-") {
      return failed(ExitStatus::Usage, "there is no file to write over: say where to write with -o OUT");
    }
    if (inPlace_) {
      output_ = object_;
    } else if (isSameFile(output_, object_)) {
      return failed(ExitStatus::Usage, output_ + " is OBJECT itself: say --in-place to write over it");
    }
    if (output_ == "-" && context.json) {
      return failed(ExitStatus::Usage, "standard output cannot take both the object and JSON: write to a file");
    }
    return {};
  }

  void report(const Context& context, const ChosenKernel& kernel, const offline::RelocatedObject& relocated) const {
    nlohmann::json document = relocateDocument(relocated);
    document["object"] = object_;
    const std::string name = object_ == "-" ? object_ : std::filesystem::path(object_).filename().string();
    reportWritten(context, output_, kernel, std::move(document), relocateView(relocated, name, kernel.kernel->name()));
  }

  std::string object_;
  std::string kernel_;
  std::string output_;
  bool inPlace_ = false;
  bool strict_ = false;
};

} // namespace

std::unique_ptr<Command> relocateCommand(CLI::App& parent) {
  return std::make_unique<RelocateCommand>(parent);
}

} // namespace btfd::btfctl
