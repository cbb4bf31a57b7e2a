#include "check_job.h"

#include "base/text.h"
#include "check/btf_file.h"
#include "check/check_object.h"
#include "check/check_result.h"
#include "check/kernels.h"
#include "message_body.h"
#include "object/checked_image.h"
#include "seam.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace btfd::loader {

namespace {

/// The most findings, and records of relocations, for one object on one kernel: nobody reads more.
constexpr std::size_t kMostOfReport = 1000;

/// The largest answer: the front does nothing else while it passes one on.
constexpr std::size_t kMostAnswered = std::size_t{4} << 20;

void makeShowable(std::string& text, std::size_t longest) {
  text = btfd::showable(text, longest);
}

void makeShowable(object::RelocationReport& relocation) {
  makeShowable(relocation.function, object::kLongestName);
  makeShowable(relocation.access, kLongestText);
  makeShowable(relocation.targetType, object::kLongestName);
  makeShowable(relocation.targetBtf, object::kLongestName);
  makeShowable(relocation.reason, kLongestText);
}

/// Makes what objects and kernels call things fit to be shown.
check::Report showable(check::Report report) {
  for (check::Finding& finding : report.findings) {
    for (std::string* name : {&finding.program, &finding.map, &finding.name}) {
      makeShowable(*name, object::kLongestName);
    }
    makeShowable(finding.message, kLongestText);
    if (finding.relocation) {
      makeShowable(*finding.relocation);
    }
  }
  for (object::RelocationReport& relocation : report.relocations) {
    makeShowable(relocation);
  }
  return report;
}

Error showable(Error error) {
  makeShowable(error.message, kLongestText);
  return error;
}

/// Bytes of all that is read of one kind, so that the memory that one request takes has a limit.
class Budget {
 public:
  explicit Budget(std::uint64_t total) : total_(total), left_(total) {}

  [[nodiscard]] std::uint64_t left() const { return left_; }

  void spend(std::uint64_t bytes) { left_ -= std::min(left_, bytes); }

  /// `error`, of reading what was larger than what is left, in words that do not suggest that it alone was too large.
  [[nodiscard]] Error explained(Error error, const std::string& what) const {
    if (error.code == EFBIG) {
      error.message = "the " + what + " of one Check may have " + std::to_string(total_) +
                      " bytes together (limits.objectBytes); this one has more than the " + std::to_string(left_) +
                      " that are left";
    }
    return error;
  }

 private:
  std::uint64_t total_;
  std::uint64_t left_;
};

/// The request's field `name`, an array; an empty one where it is absent.
const nlohmann::json& arrayIn(const nlohmann::json& json, const char* name) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  const auto found = json.find(name);
  return found == json.end() || !found->is_array() ? kEmpty : *found;
}

std::string placeIn(const std::string& array, std::size_t index) {
  return array + "[" + std::to_string(index) + "]";
}

/// What the request calls the entry, or else "object 2", counted as it is in the array.
std::string nameOf(const nlohmann::json& entry, const std::string& kind, std::size_t index) {
  const auto name = entry.value("name", "");
  return name.empty() ? kind + " " + std::to_string(index) : name;
}

class CheckJob {
 public:
  CheckJob(const nlohmann::json& request, RequestDescriptors& descriptors, const JobLimits& limits)
      : parameters_(request.at("parameters")), descriptors_(descriptors), limits_(limits) {
    options_.allRelocations = parameters_.value("allRelocations", false);
    options_.most = kMostOfReport;
  }

  Outcome<JobReply> run() {
    const auto& kernels = arrayIn(parameters_, "kernels");
    // First of all: if there is none to lend yet, the job is done again once there is.
    if (kernels.empty() && kernelSpec().spec == nullptr) {
      return noKernelBtf("a Check without kernels asks about the running one, which needs kernel BTF");
    }
    if (auto read = readObjects(); !read) {
      return std::unexpected(std::move(read.error()));
    }
    if (kernels.empty()) {
      if (auto checked = checkOnRunning(*kernelSpec().spec); !checked) {
        return std::unexpected(std::move(checked.error()));
      }
    }
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (auto checked = checkOn(kernels[i], i); !checked) {
        return std::unexpected(std::move(checked.error()));
      }
    }
    return answer();
  }

 private:
  Outcome<void> readObjects() {
    Budget budget(limits_.objectBytes);
    const auto& objects = arrayIn(parameters_, "objects");
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const auto file = take(objects[i], "objectFileDescriptor", placeIn("objects", i));
      if (!file) {
        return std::unexpected(file.error());
      }
      auto object = check::ObjectToCheck::read(*file, budget.left());
      check::CheckedObject& checked = result_.objects.emplace_back();
      checked.name = nameOf(objects[i], "object", i);
      if (object) {
        budget.spend(object->image().size());
        objects_.emplace_back(std::move(*object));
      } else {
        checked.error = showable(budget.explained(std::move(object.error()), "objects"));
        objects_.emplace_back();
      }
    }
    return {};
  }

  Outcome<void> checkOnRunning(const btf::KernelSpec& spec) {
    check::CheckedKernel& kernel = result_.kernels.emplace_back();
    kernel.name = check::runningKernelName();
    kernel.path = spec.path();
    for (const btf::ModuleBtf& module : spec.modules()) {
      if (module.btf == nullptr) {
        kernel.leftOut.push_back(showable(Error{module.error}.within(module.name)));
      }
    }
    return checkAllOn(*check::TargetKernel::of(kernel.name, spec), kernel);
  }

  /// One kernel at a time, since each may take as much memory as all objects.
  Outcome<void> checkOn(const nlohmann::json& entry, std::size_t index) {
    const std::string place = placeIn("kernels", index);
    const auto file = take(entry, "btfFileDescriptor", place);
    if (!file) {
      return std::unexpected(file.error());
    }
    check::CheckedKernel checked;
    checked.name = nameOf(entry, "kernel", index);
    Budget budget(limits_.objectBytes);
    auto kernel = readKernel(*file, checked.name, budget);
    // Also of a kernel that cannot be read: a wrong index is wrong whatever the files hold.
    if (auto added = addModules(entry, place, kernel ? kernel->get() : nullptr, budget, checked); !added) {
      return added;
    }
    if (kernel) {
      if (auto all = checkAllOn(**kernel, checked); !all) {
        return all;
      }
    } else {
      checked.error = showable(std::move(kernel.error()));
    }
    result_.kernels.push_back(std::move(checked));
    return {};
  }

  static Result<std::unique_ptr<check::TargetKernel>> readKernel(BorrowedFd file, const std::string& name,
                                                                 Budget& budget) {
    const auto bytes = check::readBtf(file, budget.left());
    if (!bytes) {
      return std::unexpected(budget.explained(bytes.error(), "BTF files of one kernel").within(name));
    }
    budget.spend(bytes->btf.size());
    if (check::isOfModule(*bytes)) {
      return fail(name + ": holds only what a module adds to its kernel's BTF: name it among the kernel's modules",
                  EINVAL);
    }
    auto kernel = check::TargetKernel::make(name, *bytes);
    if (!kernel) {
      return std::unexpected(std::move(kernel.error()).within(name));
    }
    return kernel;
  }

  Outcome<void> addModules(const nlohmann::json& entry, const std::string& place, check::TargetKernel* kernel,
                           Budget& budget, check::CheckedKernel& checked) {
    const auto& modules = arrayIn(entry, "modules");
    for (std::size_t i = 0; i < modules.size(); ++i) {
      const auto file = take(modules[i], "btfFileDescriptor", placeIn(place + ".modules", i));
      if (!file) {
        return std::unexpected(file.error());
      }
      if (kernel == nullptr) {
        continue;
      }
      const std::string name = nameOf(modules[i], "module", i);
      if (auto added = addModule(*kernel, *file, name, budget); !added) {
        checked.leftOut.push_back(showable(std::move(added.error()).within(name)));
      }
    }
    return {};
  }

  static Result<void> addModule(check::TargetKernel& kernel, BorrowedFd file, const std::string& name, Budget& budget) {
    const auto bytes = check::readBtf(file, budget.left());
    if (!bytes) {
      return std::unexpected(budget.explained(bytes.error(), "BTF files of one kernel"));
    }
    budget.spend(bytes->btf.size() + bytes->distilledBase.size());
    return kernel.addModule(name, *bytes);
  }

  Outcome<void> checkAllOn(const check::TargetKernel& kernel, check::CheckedKernel& checked) {
    checked.modules = kernel.targets().size() - 1;
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (!objects_[i]) {
        continue;
      }
      const auto& report =
          result_.objects[i].reports.emplace_back(showable(check::checkObject(*objects_[i], kernel, options_)));
      // Not only in the end: there may be gigabytes of reports until then.
      for (const check::Finding& finding : report.findings) {
        texts_ += finding.message.size() + finding.name.size();
      }
      if (texts_ > kMostAnswered) {
        return std::unexpected(tooLarge("more than " + std::to_string(texts_)));
      }
    }
    return {};
  }

  static Failure tooLarge(const std::string& bytes) {
    return limitExceeded("the answer takes " + bytes + " bytes, and one has at most " + std::to_string(kMostAnswered) +
                             "; check fewer objects or kernels at once, or leave allRelocations out",
                         "answerBytes", kMostAnswered);
  }

  [[nodiscard]] Outcome<JobReply> answer() const {
    JobReply reply;
    reply.body = check::toJson(result_);
    if (const std::size_t bytes = encodeBody(reply.body).size(); bytes > kMostAnswered) {
      return std::unexpected(tooLarge(std::to_string(bytes)));
    }
    return reply;
  }

  Outcome<BorrowedFd> take(const nlohmann::json& entry, const char* field, const std::string& place) {
    return descriptors_.take(entry.at(field), place + "." + field);
  }

  const nlohmann::json& parameters_;
  RequestDescriptors& descriptors_;
  const JobLimits& limits_;
  check::CheckOptions options_;
  /// Nothing for those that could not be read.
  std::vector<std::optional<check::ObjectToCheck>> objects_;
  check::CheckResult result_;
  /// Bytes of texts in the reports so far.
  std::size_t texts_ = 0;
};

} // namespace

Outcome<JobReply> runCheckJob(const nlohmann::json& request, RequestDescriptors& descriptors, const JobLimits& limits) {
  return CheckJob(request, descriptors, limits).run();
}

} // namespace btfd::loader
