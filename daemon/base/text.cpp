#include "text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace btfd {

namespace {

struct Range {
  char32_t first;
  char32_t last;
};

/// Controls (C0 and DEL, C1) and what is of no width or changes the direction: of Unicode's general category Cf all but
/// the visible signs of some scripts; and the separators of lines and paragraphs.
constexpr std::array kUnshowable{
    Range{0x0000, 0x001f}, Range{0x007f, 0x009f}, Range{0x00ad, 0x00ad},   Range{0x061c, 0x061c},
    Range{0x180e, 0x180e}, Range{0x200b, 0x200f}, Range{0x2028, 0x202e},   Range{0x2060, 0x206f},
    Range{0xfeff, 0xfeff}, Range{0xfff9, 0xfffb}, Range{0xe0000, 0xe007f},
};

unsigned byteAt(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// Bytes of the character that begins with `lead` (RFC 3629); 0 if none does.
std::size_t lengthOf(unsigned lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead < 0xc2 || lead > 0xf4) {
    return 0;
  }
  return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

void addHex(std::string& out, unsigned byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 0xfU];
}

} // namespace

Character characterAt(std::string_view text, std::size_t at) {
  constexpr std::array<unsigned, 5> kLeadBits{0, 0x7f, 0x1f, 0x0f, 0x07};
  const unsigned lead = byteAt(text, at);
  const std::size_t length = lengthOf(lead);
  if (length == 0 || length > text.size() - at) {
    return {};
  }
  char32_t code = lead & kLeadBits[length];
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned byte = byteAt(text, at + i);
    if ((byte & 0xc0U) != 0x80) {
      return {};
    }
    code = code << 6U | (byte & 0x3fU);
  }
  const bool unshowable =
      std::ranges::any_of(kUnshowable, [&](const Range& range) { return code >= range.first && code <= range.last; });
  return {.bytes = length, .showable = !unshowable};
}

bool isShowable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = characterAt(text, at);
    if (!character.showable) {
      return false;
    }
    at += character.bytes;
  }
  return true;
}

std::string toHex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    addHex(text, std::to_integer<unsigned>(byte));
  }
  return text;
}

void appendEscaped(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    out += "\\x";
    addHex(out, static_cast<unsigned char>(byte));
  }
}

std::string shown(std::string_view name) {
  constexpr std::size_t kLongest = 256;
  return name.size() <= kLongest ? std::string(name) : std::string(name.substr(0, kLongest)) + "...";
}

std::string quotedName(std::string_view name) {
  return "'" + shown(name) + "'";
}

std::string escaped(std::string_view text) {
  return showable(text, std::numeric_limits<std::size_t>::max());
}

std::string showable(std::string_view text, std::size_t longest) {
  constexpr std::size_t kEscapedByte = sizeof("\\xNN") - 1;
  std::string out;
  out.reserve(std::min(text.size(), longest));
  for (std::size_t at = 0; at < text.size();) {
    const Character character = characterAt(text, at);
    const std::string_view bytes = text.substr(at, character.bytes);
    if (bytes.size() * (character.showable ? 1 : kEscapedByte) > longest - out.size()) {
      return out + "...";
    }
    if (character.showable) {
      out += bytes;
    } else {
      appendEscaped(out, bytes);
    }
    at += character.bytes;
  }
  return out;
}

} // namespace btfd
