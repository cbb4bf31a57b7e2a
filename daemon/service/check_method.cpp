#include "check_method.h"

#include "answers.h"
#include "base/text.h"
#include "load_request.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace btfd::service {

namespace {

/// The most bytes of what a client calls an object or kernel; the answer has it once for each pair of them.
constexpr std::size_t kMaximumName = 256;

/// Checks the names in the array `field` of the request, at `place`, and those in the arrays `inner` of its entries.
std::optional<InvalidField> checkNames(const nlohmann::json& request, const char* field, const std::string& place,
                                       const char* inner = nullptr) {
  const auto entries = request.find(field);
  if (entries == request.end() || entries->is_null()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const nlohmann::json& entry = (*entries)[i];
    const std::string here = place + field + "[" + std::to_string(i) + "]";
    const auto name = entry.find("name");
    if (name != entry.end() && name->is_string()) {
      const auto& text = name->get_ref<const std::string&>();
      if (text.size() > kMaximumName || !isShowable(text)) {
        return InvalidField{here + ".name", "has to have at most " + std::to_string(kMaximumName) +
                                                " bytes without control and format characters"};
      }
    }
    if (inner != nullptr) {
      if (auto invalid = checkNames(entry, inner, here + ".")) {
        return invalid;
      }
    }
  }
  return std::nullopt;
}

std::optional<InvalidField> checkNames(const nlohmann::json& request) {
  auto invalid = checkNames(request, "objects", "");
  return invalid ? invalid : checkNames(request, "kernels", "", "modules");
}

} // namespace

void CheckMethod::call(varlink::Call call) {
  if (call.parameters().at("objects").empty()) {
    call.invalidParameter("objects", "is empty: at least one object is needed");
    return;
  }
  if (const auto invalid = checkNames(call.parameters())) {
    call.invalidParameter(invalid->field, invalid->reason);
    return;
  }
  const auto deadline = deadlineOf(call, config_);
  if (!deadline) {
    return;
  }
  Job job{.body = {},
          .descriptors = takeAllDescriptors(call),
          .party = partyOf(call.peer()),
          .deadline = *deadline,
          .done = {}};
  job.body["job"] = "check";
  job.body["parameters"] = call.takeParameters();
  const auto kept = std::make_shared<varlink::Call>(std::move(call));
  jobs_.submit(
      kept, std::move(job),
      [kept](JobSubmission::Outcome&& outcome) {
        if (outcome) {
          answer(*kept, outcome->body, AnswerDescriptors(false));
        } else {
          answerFailure(*kept, outcome.error());
        }
      },
      [] {});
}

} // namespace btfd::service
