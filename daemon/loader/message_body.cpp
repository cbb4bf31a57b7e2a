#include "message_body.h"

#include <utility>

namespace btfd::loader {

namespace {

/// Twice what the front takes of clients (varlink's limit is 64), as bodies wrap a client's JSON in their own.
constexpr std::size_t kMaximumDepth = 128;

/// Walks over CBOR without reading values. nlohmann's reader takes a stack frame for each level of nesting, also of
/// strings of no stated length, and throws on counts larger than memory even when it is told not to.
class Walk {
 public:
  explicit Walk(std::span<const std::byte> rest) : rest_(rest) {}

  /// Whether there is one value, in the forms that nlohmann writes, and nothing after it.
  bool isSound() {
    // Values still to come, by level.
    std::vector<std::uint64_t> open{1};
    while (!open.empty()) {
      if (open.back() == 0) {
        open.pop_back();
        continue;
      }
      --open.back();
      const auto inside = skipHead();
      if (!inside || (*inside > 0 && open.size() > kMaximumDepth)) {
        return false;
      }
      if (*inside > 0) {
        open.push_back(*inside);
      }
    }
    return rest_.empty();
  }

 private:
  /// RFC 8949, section 3.1.
  enum Major : unsigned { unsignedInteger, negativeInteger, bytes, text, array, map, tag, simple };

  /// Skips a value's head, and its content where that is bytes. How many values are in it, or nothing if it is broken.
  std::optional<std::uint64_t> skipHead() {
    if (rest_.empty()) {
      return std::nullopt;
    }
    const auto initial = std::to_integer<unsigned>(rest_[0]);
    rest_ = rest_.subspan(1);
    const auto argument = skipArgument(initial & 0x1fU);
    if (!argument) {
      return std::nullopt;
    }
    switch (initial >> 5U) {
    case unsignedInteger:
    case negativeInteger:
    case simple:
      return 0;
    case bytes:
    case text:
      if (*argument > rest_.size()) {
        return std::nullopt;
      }
      rest_ = rest_.subspan(*argument);
      return 0;
    case array: // each element takes a byte at least
      return *argument > rest_.size() ? std::nullopt : argument;
    case map:
      return *argument > rest_.size() / 2 ? std::nullopt : std::optional(2 * *argument);
    default:
      return std::nullopt; // no tags
    }
  }

  std::optional<std::uint64_t> skipArgument(unsigned low) {
    constexpr unsigned kOneByte = 24;
    constexpr unsigned kEightBytes = 27;
    if (low < kOneByte) {
      return low;
    }
    if (low > kEightBytes) {
      return std::nullopt; // reserved, or of no stated length
    }
    const std::size_t size = std::size_t{1} << (low - kOneByte);
    if (size > rest_.size()) {
      return std::nullopt;
    }
    std::uint64_t argument = 0;
    for (const std::byte byte : rest_.first(size)) {
      argument = argument << 8U | std::to_integer<std::uint64_t>(byte);
    }
    rest_ = rest_.subspan(size);
    return argument;
  }

  std::span<const std::byte> rest_;
};

} // namespace

std::vector<std::uint8_t> encodeBody(const nlohmann::json& body) {
  return nlohmann::json::to_cbor(body);
}

std::optional<nlohmann::json> decodeBody(std::span<const std::byte> encoded) {
  if (!Walk(encoded).isSound()) {
    return std::nullopt;
  }
  auto body = nlohmann::json::from_cbor(encoded, true, false);
  return body.is_discarded() ? std::nullopt : std::optional(std::move(body));
}

} // namespace btfd::loader
