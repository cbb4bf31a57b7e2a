#include "inline_object.h"

#include "base/memfd.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

namespace btfd::service {

namespace {

/// RFC 4648, section 4.
bool isDigit(char character) {
  return (character >= 'A' && character <= 'Z') || (character >= 'a' && character <= 'z') ||
         (character >= '0' && character <= '9') || character == '+' || character == '/';
}

} // namespace

Result<UniqueFd> decodeInlineObject(std::string_view base64) {
  if (base64.empty() || base64.size() % 4 != 0) {
    return fail("is no base64: its length is no multiple of 4", EINVAL);
  }
  // EVP_DecodeBlock would skip white space and dashes at the ends, and take padding anywhere for zeros.
  const std::size_t padding = base64.ends_with("==") ? 2 : base64.ends_with('=') ? 1 : 0;
  if (!std::ranges::all_of(base64.substr(0, base64.size() - padding), isDigit)) {
    return fail("is no base64", EINVAL);
  }
  std::vector<unsigned char> bytes(base64.size() / 4 * 3);
  const auto* text = reinterpret_cast<const unsigned char*>(base64.data()); // NOLINT
  const int decoded = EVP_DecodeBlock(bytes.data(), text, static_cast<int>(base64.size()));
  if (decoded < 0) {
    return fail("is no base64", EINVAL);
  }
  bytes.resize(static_cast<std::size_t>(decoded) - padding); // which it counts as bytes

  return sealedMemfd("object", std::as_bytes(std::span(bytes)));
}

} // namespace btfd::service
