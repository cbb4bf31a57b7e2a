#include "btfctl/command.h"
#include "btfctl/kernel_choice.h"
#include "btfctl/object_file.h"
#include "btfctl/output_file.h"
#include "btfctl/relocate_view.h"
#include "btfctl/text.h"
#include "offline/minimized_btf.h"

#include <CLI/CLI.hpp>
#include <bpf/libbpf.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace btfd::btfctl {
namespace {

class MinimizeCommand : public Command {
 public:
  explicit MinimizeCommand(CLI::App& parent)
      : Command(parent, "minimize", "Write the least BTF of a kernel that CO-RE relocations of objects need",
                "  btfctl btf minimize *.o --kernel 4.19.btf.xz -o 4.19.min.btf\n"
                "      for a kernel that has no BTF itself: kilobytes to ship with the objects, instead of megabytes\n"
                "  btfctl btf minimize tcpconnect.o -o running.min.btf\n"
                "      of the running kernel; needs neither privileges nor the daemon\n"
                "  for k in btf/*.btf.xz; do btfctl btf minimize *.o --kernel $k -o min/$(basename $k .xz); done\n"
                "\nWith the result (libbpf's btf_custom_path, btfctl check --kernel) the objects' relocations come to "
                "the\nsame as with all of the kernel's BTF: values, what is missing, and what is ambiguous. Types of "
                "modules\nare among the kernel's. It serves no other objects, and nothing but CO-RE.\n"
                "\nExit status:\n"
                "  0  written\n"
                "  1  written, but an object could not be read, is of another byte order, or has a relocation that the "
                "kernel\n     cannot satisfy, and no guard; or it cannot be made or written, and OUT is as it was\n"
                "  2  the command line is wrong, or no object or not the kernel can be read\n") {
    app().add_option("OBJECT", objects_, "Object files")->type_name("")->required()->expected(1, kAny);
    option("--kernel", "FILE|DIR", kernel_, "The kernel's BTF, else the running kernel's");
    option("--output,-o", "OUT", output_, "File to write; - for standard output")->required();
  }

  [[nodiscard]] std::string subject() const override { return "btf minimize"; }

  Outcome<int> run(const Context& context) override {
    libbpf_set_print(nullptr); // what it would say is said by us
    if (auto checked = checkOutput(context); !checked) {
      return std::unexpected(std::move(checked.error()));
    }
    const auto kernel = chooseKernel(kernel_, output_);
    if (!kernel) {
      return std::unexpected(kernel.error());
    }
    const auto objects = readObjects();
    if (objects.empty()) {
      return misused(*given_.front().error);
    }
    const auto minimized = offline::minimizeBtf(objects, *kernel->kernel);
    if (!minimized) {
      return failed(ExitStatus::Failed, minimized.error().message);
    }
    if (auto written = writeOutput(output_, minimized->btf, context.out); !written) {
      return failed(ExitStatus::Failed, written.error().message);
    }
    reportWritten(context, output_, *kernel, document(*minimized), view(*kernel, *minimized));
    for (const Given& each : given_) {
      if (each.error) {
        context.note("an object is left out: " + printable(each.error->message));
      }
    }
    return static_cast<int>(statusOf(*minimized));
  }

 private:
  static constexpr int kAny = 100'000;

  [[nodiscard]] Outcome<void> checkOutput(const Context& context) const {
    const auto isOutput = [&](const std::string& path) { return isSameFile(output_, path); };
    if (std::ranges::any_of(objects_, isOutput)) {
      return failed(ExitStatus::Usage, output_ + " is one of the objects");
    }
    if (output_ == "-" && context.json) {
      return failed(ExitStatus::Usage, "standard output cannot take both BTF and JSON: write to a file");
    }
    return {};
  }

  /// An object of the command line, and why it could not be read.
  struct Given {
    std::string path;
    std::optional<Error> error;
  };

  /// Those that can be read.
  std::vector<check::ObjectToCheck> readObjects() {
    std::vector<check::ObjectToCheck> objects;
    for (const std::string& path : objects_) {
      auto object = readObject(path);
      given_.push_back({.path = path, .error = std::nullopt});
      if (object) {
        objects.push_back(std::move(*object));
      } else {
        given_.back().error = std::move(object.error());
      }
    }
    return objects;
  }

  [[nodiscard]] ExitStatus statusOf(const offline::MinimizedBtf& minimized) const {
    const bool isLeftOut = std::ranges::any_of(given_, [](const Given& each) { return each.error.has_value(); });
    const bool isRefused =
        std::ranges::any_of(minimized.objects, [](const auto& each) { return !each.refused.empty(); });
    return isLeftOut || isRefused ? ExitStatus::Failed : ExitStatus::Done;
  }

  [[nodiscard]] std::string view(const ChosenKernel& kernel, const offline::MinimizedBtf& minimized) const {
    std::string text = printable(kernel.kernel->name()) + ": " + std::to_string(minimized.types) + " types, " +
                       humanBytes(static_cast<std::int64_t>(minimized.btf.size())) + "\n";
    if (minimized.fillers != 0) {
      text += "  " + std::to_string(minimized.fillers) +
              " of them only keep others at their ids, for which objects ask (bpf_core_type_id_kernel)\n";
    }
    auto outcome = minimized.objects.begin();
    for (const Given& each : given_) {
      if (!each.error) {
        text += objectLines(printable(each.path), *outcome++);
      }
    }
    return text;
  }

  /// Nothing if all is well.
  static std::string objectLines(const std::string& path, const offline::MinimizedBtf::Outcome& outcome) {
    const check::RelocationCounts& counts = outcome.counts;
    std::string text;
    if (counts.poisoned + counts.failed != 0) {
      text = "  " + path + ": of " + std::to_string(counts.resolved + counts.poisoned + counts.failed) +
             " CO-RE relocations, " + std::to_string(counts.poisoned) + (counts.poisoned == 1 ? " is" : " are") +
             " poisoned and " + std::to_string(counts.failed) + (counts.failed == 1 ? " fails" : " fail") +
             " on this kernel" + (outcome.refused.empty() ? ", in code that is not reached there" : "") + "\n";
    }
    return text + findingLines("  " + path + ": fails: ", outcome.refused);
  }

  [[nodiscard]] nlohmann::json document(const offline::MinimizedBtf& minimized) const {
    auto objects = nlohmann::json::array();
    auto outcome = minimized.objects.begin();
    for (const Given& each : given_) {
      if (each.error) {
        objects.push_back({{"path", each.path}, {"error", each.error->message}});
        continue;
      }
      const check::RelocationCounts& counts = outcome->counts;
      objects.push_back({{"path", each.path},
                         {"resolvedRelocations", counts.resolved},
                         {"poisonedRelocations", counts.poisoned},
                         {"failedRelocations", counts.failed},
                         {"findings", toJson(outcome->refused)}});
      ++outcome;
    }
    return {{"bytes", minimized.btf.size()},
            {"types", minimized.types},
            {"fillers", minimized.fillers},
            {"objects", std::move(objects)}};
  }

  std::vector<std::string> objects_;
  std::vector<Given> given_;
  std::string kernel_;
  std::string output_;
};

} // namespace

std::unique_ptr<Command> minimizeCommand(CLI::App& parent) {
  CLI::App* group = parent.add_subcommand("btf", "Make BTF for other kernels");
  group->require_subcommand(1);
  group->footer(
      "Examples:\n  btfctl btf minimize *.o --kernel 4.19.btf.xz -o 4.19.min.btf\n  btfctl btf minimize --help");
  return std::make_unique<MinimizeCommand>(*group);
}

} // namespace btfd::btfctl
