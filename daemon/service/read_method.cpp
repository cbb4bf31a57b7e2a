#include "read_method.h"

#include "answers.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace btfd::service {

namespace {

/// Bytes of a piece that is one of several, and of all where there is only one answer; in base64, a third more.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
constexpr std::size_t kAnswerBytes = std::size_t{1} << 20;

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');                                  // and a NUL character
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),        // NOLINT
                                     reinterpret_cast<const unsigned char*>(bytes.data()), // NOLINT
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// Takes the beginning of a character whose end is still to come off the end of UTF-8 `text`.
std::string takeUnfinished(std::string& text) {
  constexpr std::size_t kLongest = 4;
  for (std::size_t back = 1; back < kLongest && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0U) == 0x80U) {
      continue; // in the midst of one
    }
    const std::size_t length = byte >= 0xf0U ? 4 : byte >= 0xe0U ? 3 : byte >= 0xc0U ? 2 : 1;
    std::string unfinished = length > back ? text.substr(text.size() - back) : std::string();
    text.resize(text.size() - unfinished.size());
    return unfinished;
  }
  return {};
}

} // namespace

/// A Read under way.
struct ReadMethod::Stream {
  varlink::Call call;
  Party party;
  bool inBase64 = false;
  /// The link, and once it is begun, the kernel's iterator.
  UniqueFd source;
  bool begun = false;
  /// What has been read and not been sent.
  std::string data;
  bool end = false;
};

void ReadMethod::call(varlink::Call call) {
  const auto id = call.parameters().at("linkId").get<std::int64_t>();
  const registry::Object* object = registry_.findByLink(static_cast<std::uint64_t>(id));
  if (object == nullptr) {
    answerNoSuchLink(call, id);
    return;
  }
  if (!policy_.mayChange(call.peer(), object->owner)) {
    answerNotOwner(call, *object);
    return;
  }
  const auto link = std::ranges::find(object->links, static_cast<std::uint64_t>(id), &registry::Link::id);
  if (link == object->links.end() || link->kind != "iter" || link->descriptors.empty()) {
    call.invalidParameter("linkId", "only the link of an iterator can be read");
    return;
  }
  const Party party = partyOf(call.peer());
  const bool inBase64 = call.parameters().value("base64", false);
  auto stream = std::make_shared<Stream>(
      Stream{.call = std::move(call), .party = party, .inBase64 = inBase64, .source = {}, .data = {}});
  stream->source = BorrowedFd(link->descriptors.front()).duplicate();
  if (!stream->source) {
    answerFailure(stream->call, failureOf(Error{.message = "cannot duplicate a link's descriptor", .code = errno}));
    return;
  }
  goOn(stream);
}

/// Has the next piece read.
void ReadMethod::goOn(const std::shared_ptr<Stream>& stream) {
  Job job{.body = {}, .descriptors = {}, .party = stream->party, .deadline = config_.limits.deadline, .done = {}};
  job.body["job"] = "read";
  job.body["ofClient"] = 0;
  job.body["source"] = 0;
  job.body["begun"] = stream->begun;
  // One more tells that it is too much.
  job.body["bytes"] = stream->call.wantsMore() ? kPieceBytes : kAnswerBytes + 1;
  job.descriptors.push_back(std::move(stream->source));
  jobs_.submit(
      std::shared_ptr<varlink::Call>(stream, &stream->call), std::move(job),
      [this, stream](JobSubmission::Outcome&& outcome) {
        if (outcome) {
          got(stream, std::move(*outcome));
        } else {
          answerFailure(stream->call, outcome.error());
        }
      },
      [] {});
}

void ReadMethod::got(const std::shared_ptr<Stream>& stream, loader::ChannelMessage message) {
  const auto data = message.body.find("data");
  stream->end = message.body.value("end", true);
  if (data == message.body.end() || !data->is_binary() || (!stream->end && message.descriptors.empty())) {
    stream->call.systemError(EPROTO); // a worker that is broken
    return;
  }
  const auto& bytes = data->get_binary();
  stream->data.append(bytes.begin(), bytes.end());
  if (!stream->end) {
    stream->source = std::move(message.descriptors.front());
    stream->begun = true;
  }
  if (!stream->call.wantsMore() && stream->data.size() > kAnswerBytes) {
    answerFailure(stream->call,
                  loader::limitExceeded("the iterator prints more than the " + std::to_string(kAnswerBytes) +
                                            " bytes of one answer; call with 'more' to get it in pieces",
                                        "answerBytes", kAnswerBytes));
    return;
  }
  send(stream);
}

/// Sends what there is, and has the rest read once the caller has taken it.
void ReadMethod::send(const std::shared_ptr<Stream>& stream) {
  std::string unfinished = stream->end || stream->inBase64 ? std::string() : takeUnfinished(stream->data);
  nlohmann::json reply;
  reply["data"] = stream->inBase64 ? base64(stream->data) : stream->data;
  if (stream->end) {
    stream->call.reply(reply);
    return;
  }
  if (!stream->call.notify(reply)) {
    stream->data += unfinished;
    stream->call.whenSent([this, stream] { send(stream); });
    return;
  }
  stream->data = std::move(unfinished);
  goOn(stream);
}

} // namespace btfd::service
