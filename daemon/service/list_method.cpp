#include "list_method.h"

#include "answers.h"
#include "load_request.h"
#include "object_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace btfd::service {

namespace {

/// What one answer lists at most: thousands of objects of usual size, and no more than is put together in an instant,
/// since nobody else is served meanwhile.
constexpr std::size_t kAnswerLimit = std::size_t{4} << 20;

/// What is put together of a stream before others have their turn.
constexpr std::size_t kTurn = std::size_t{256} << 10;

using Objects = std::map<std::uint64_t, registry::Object>;

nlohmann::json describe(const registry::Object& object) {
  AnswerDescriptors none(false);
  return toJson(object, none);
}

} // namespace

/// Which objects are wanted.
struct ListMethod::Filter {
  explicit Filter(const nlohmann::json& parameters) : labels(labelsOf(parameters)) {
    if (const auto given = parameters.find("name"); given != parameters.end()) {
      name = given->get<std::string>();
    }
  }

  registry::Labels labels;
  std::optional<std::string> name;

  [[nodiscard]] bool accepts(const registry::Object& object) const {
    return (!name || *name == object.name) && std::ranges::all_of(labels, [&](const auto& label) {
             const auto found = object.labels.find(label.first);
             return found != object.labels.end() && found->second == label.second;
           });
  }

  /// The first that is wanted, from `at` on.
  [[nodiscard]] Objects::const_iterator next(const Objects& objects, Objects::const_iterator at) const {
    return std::find_if(at, objects.end(), [this](const auto& entry) { return accepts(entry.second); });
  }
};

/// A List with `more` under way.
struct ListMethod::Stream {
  varlink::Call call;
  Filter filter;
  /// The last that was sent.
  std::uint64_t lastId = 0;
};

void ListMethod::call(varlink::Call call) {
  if (const auto invalid = checkLabels(call.parameters())) {
    call.invalidParameter(invalid->field, invalid->reason);
    return;
  }
  Filter filter(call.parameters());
  if (!call.wantsMore()) {
    answerAll(call, filter);
    return;
  }
  goOn(std::make_shared<Stream>(Stream{.call = std::move(call), .filter = std::move(filter), .lastId = 0}));
}

/// All that is wanted in one answer, or the error that it does not fit.
void ListMethod::answerAll(varlink::Call& call, const Filter& filter) const {
  const Objects& objects = registry_.objects();
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (auto at = filter.next(objects, objects.begin()); at != objects.end(); at = filter.next(objects, ++at)) {
    bytes += at->second.describedBytes;
    ++count;
  }
  // Half of a message leaves room for what the wire adds: descriptions are counted without.
  const std::size_t limit = std::min(kAnswerLimit, call.messageLimit() / 2);
  if (bytes > limit) {
    answerFailure(
        call, loader::limitExceeded("the " + std::to_string(count) + " objects take " + std::to_string(bytes) +
                                        " bytes, more than the " + std::to_string(limit) +
                                        " of one answer; call with 'more' to get one object an answer, or select by "
                                        "labels or name",
                                    "answerBytes", limit));
    return;
  }
  nlohmann::json reply;
  auto& list = reply["objects"] = nlohmann::json::array();
  for (auto at = filter.next(objects, objects.begin()); at != objects.end(); at = filter.next(objects, ++at)) {
    list.push_back(describe(at->second));
  }
  call.reply(reply);
}

/// Sends what the caller takes without waiting, but not all at once. Objects that come and go meanwhile are listed or
/// not.
void ListMethod::goOn(const std::shared_ptr<Stream>& stream) {
  const Objects& objects = registry_.objects();
  auto at = stream->filter.next(objects, objects.upper_bound(stream->lastId));
  for (std::size_t sent = 0; at != objects.end() && sent < kTurn;) {
    nlohmann::json reply;
    reply["objects"].push_back(describe(at->second));
    const auto following = stream->filter.next(objects, std::next(at));
    if (following == objects.end()) {
      stream->call.reply(reply);
      return;
    }
    if (!stream->call.notify(reply)) {
      break;
    }
    stream->lastId = at->first;
    sent += at->second.describedBytes;
    at = following;
  }
  if (at == objects.end()) {
    stream->call.reply({{"objects", nlohmann::json::array()}});
    return;
  }
  stream->call.whenSent([this, stream] { goOn(stream); });
}

} // namespace btfd::service
