#include "minimized_btf.h"

#include "check/check_object.h"
#include "core/explain.h"
#include "used_types.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace btfd::offline {

namespace {

/// An object after its relocations.
struct Resolved {
  std::vector<std::byte> image;
  std::vector<core::Relocation> relocations;
};

Resolved resolve(const check::ObjectToCheck& object, const core::Targets& kernel) {
  const auto original = object.image();
  Resolved resolved{.image = {original.begin(), original.end()}, .relocations = {}};
  resolved.relocations = object.records().resolve(resolved.image, kernel);
  return resolved;
}

std::vector<core::Usage> usagesOf(const core::Targets& kernel) {
  std::vector<core::Usage> usages(kernel.size());
  for (std::size_t module = 1; module < usages.size(); ++module) {
    usages[module] = core::Usage(usages.front(), kernel[0].types.count());
  }
  return usages;
}

MinimizedBtf::Outcome outcomeOf(const check::ObjectToCheck& object, const check::TargetKernel& kernel) {
  check::Report report = check::checkObject(object, kernel);
  MinimizedBtf::Outcome outcome{.counts = report.relocationCounts, .refused = {}};
  for (check::Finding& finding : report.findings) {
    const bool concerns = finding.topic == check::Topic::relocation || finding.topic == check::Topic::object;
    if (concerns && finding.severity == check::Severity::error) {
      outcome.refused.push_back(std::move(finding));
    }
  }
  return outcome;
}

/// An error if `object` comes out differently with all of `kernel` and with the least of it.
Result<void> compare(const check::ObjectToCheck& object, const Resolved& whole, const core::Targets& least) {
  const Resolved resolved = resolve(object, least);
  for (std::size_t i = 0; i < whole.relocations.size(); ++i) {
    const core::Relocation& before = whole.relocations[i];
    const core::Relocation& after = resolved.relocations[i];
    if (before.outcome != after.outcome || before.value != after.value) {
      return fail("the types of this kernel and its modules cannot be put into one BTF: " +
                      std::string(core::kindName(before.record.kind)) + " of " +
                      core::accessPath(object.records().types(), before.record) + " would come out differently",
                  ENOTSUP);
    }
  }
  if (resolved.image != whole.image) {
    return fail("the types of this kernel cannot be minimized: the code would come out differently", ENOTSUP);
  }
  return {};
}

/// "; the first thing amiss: ...", or nothing.
std::string firstRefusal(const std::vector<MinimizedBtf::Outcome>& objects) {
  const auto found = std::ranges::find_if(objects, [](const auto& each) { return !each.refused.empty(); });
  return found == objects.end() ? "" : "; the first thing amiss: " + found->refused.front().message;
}

} // namespace

Result<MinimizedBtf> minimizeBtf(std::span<const check::ObjectToCheck> objects, const check::TargetKernel& kernel) {
  auto usages = usagesOf(kernel.targets());
  const core::Targets noting = kernel.targets().notedIn(usages);
  std::vector<Resolved> whole;
  MinimizedBtf result;
  for (const check::ObjectToCheck& object : objects) {
    whole.push_back(resolve(object, noting));
    result.objects.push_back(outcomeOf(object, kernel));
  }
  UsedTypes types(kernel.targets(), usages);
  if (types.count() == 0) {
    return fail("the objects ask for nothing that the kernel has: there is no BTF to write" +
                    firstRefusal(result.objects),
                ENODATA);
  }
  auto written = types.write();
  if (!written) {
    return std::unexpected(std::move(written.error()));
  }
  const auto least = check::TargetKernel::make("minimized", {.btf = *written, .distilledBase = {}});
  if (!least) {
    return std::unexpected(least.error());
  }
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (auto same = compare(objects[i], whole[i], (*least)->targets()); !same) {
      return std::unexpected(std::move(same.error()));
    }
  }
  result.btf = std::move(*written);
  result.types = types.count() + types.fillers();
  result.fillers = types.fillers();
  return result;
}

} // namespace btfd::offline
