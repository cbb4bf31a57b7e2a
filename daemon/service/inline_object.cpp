#include "inline_object.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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

  UniqueFd memfd(::memfd_create("btfd-inline-object", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) {
    return failErrno("cannot make a memfd for the object", errno);
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t put = ::write(memfd.get(), bytes.data() + at, bytes.size() - at);
    if (put < 0 && errno != EINTR) {
      return failErrno("cannot fill a memfd with the object", errno);
    }
    at += static_cast<std::size_t>(std::max<ssize_t>(put, 0));
  }
  if (::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
    return failErrno("cannot seal the object's memfd", errno);
  }
  return memfd;
}

} // namespace btfd::service
