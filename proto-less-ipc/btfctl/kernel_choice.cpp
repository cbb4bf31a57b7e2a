#include "btfctl/kernel_choice.h"

#include "base/text.h"
#include "btfctl/output_file.h"
#include "check/check_result.h"

#include <ostream>
#include <utility>

namespace btfd::btfctl {

Outcome<ChosenKernel> chooseKernel(const std::string& path, const std::string& output) {
  const auto isOutput = [&](const std::string& file) { return isSameFile(output, file); };
  if (isOutput(path)) {
    return failed(ExitStatus::Usage, output + " is the kernel's BTF");
  }
  auto found = check::findKernels(path.empty() ? check::kRunningKernel : path);
  std::vector<std::string> paths;
  for (const check::FoundKernel& each : found) {
    if (!each.kernel) {
      return misused(each.kernel.error());
    }
    paths.push_back(each.path);
  }
  if (found.size() != 1) {
    return failed(ExitStatus::Usage,
                  path + " holds " + std::to_string(paths.size()) + " kernels: name one of " + joined(paths));
  }
  if (isOutput(paths.front())) {
    return failed(ExitStatus::Usage, output + " is the kernel's BTF");
  }
  check::FoundKernel& only = found.front();
  return ChosenKernel{
      .path = std::move(only.path), .kernel = std::move(*only.kernel), .leftOut = std::move(only.leftOut)};
}

void reportWritten(const Context& context, const std::string& output, const ChosenKernel& kernel,
                   nlohmann::json document, const std::string& text) {
  document["output"] = output;
  document["kernel"] = toJson(check::CheckedKernel{.name = kernel.kernel->name(),
                                                   .path = kernel.path,
                                                   .modules = kernel.kernel->targets().size() - 1,
                                                   .leftOut = kernel.leftOut,
                                                   .error = {}});
  if (output == "-") {
    context.errors << text << std::flush;
  } else {
    context.print(document, text);
  }
  for (const Error& error : kernel.leftOut) {
    context.note("a module is left out: " + error.message);
  }
}

} // namespace btfd::btfctl
