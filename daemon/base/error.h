#pragma once

#include <cstring>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace btfd {

/// Why something that can fail in normal use failed: a text for the person who gets it, and the errno behind it, if
/// any.
///
/// The text says what failed and on what; `within` puts the caller's view in front of it on the way up.
struct Error {
  std::string message;
  /// A positive errno value, 0 where none is known.
  int code = 0;

  /// `what` and the text of errno value `code`.
  static Error fromErrno(std::string_view what, int code) {
    return {std::string(what) + ": " + std::strerror(code), code};
  }

  /// This error, seen from one level further up: "context: message".
  [[nodiscard]] Error within(std::string_view context) && {
    message = std::string(context) + ": " + message;
    return std::move(*this);
  }
};

/// What a function returns that can fail in normal use. Exceptions are for bugs and for memory running out.
template <typename T>
using Result = std::expected<T, Error>;

/// An error result with a text and, optionally, an errno value.
inline std::unexpected<Error> fail(std::string message, int code = 0) {
  return std::unexpected(Error{std::move(message), code});
}

/// An error result from `what` and errno value `code`.
inline std::unexpected<Error> failErrno(std::string_view what, int code) {
  return std::unexpected(Error::fromErrno(what, code));
}

} // namespace btfd
