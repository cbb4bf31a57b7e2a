#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace btfd::btfctl {

/// Whether line breaks and tabs are part of a text, as in a log, or escaped like other control characters.
enum class Lines { Escape, Keep };

/// `text` fit to be shown on a terminal: what could move the cursor, change its settings or turn the direction of text
/// (base/text.h) is shown as \xNN. Names and labels that the daemon reports were chosen by other users.
std::string printable(std::string_view text, Lines lines = Lines::Escape);

/// Columns that UTF-8 `text` takes on a terminal, counted as one for each code point.
std::size_t displayWidth(std::string_view text);

/// `text`, its end replaced by "..." if it takes more than `width` columns.
std::string shortened(std::string_view text, std::size_t width);

/// Each line of `text` behind `indent` spaces, with a line break at the end.
std::string indented(std::string_view text, std::size_t indent);

/// "a", "a or b", "a, b or c".
std::string joinedWithOr(std::span<const std::string> words);

/// "a, b, c and 97 more": no more than a few of the words.
std::string listed(std::span<const std::string> words);

/// Those of `candidates` that somebody who typed `word`, in large letters or small ones, may have meant, best first, at
/// most three.
std::vector<std::string> nearMisses(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean a or b?", empty if there are no near misses.
std::string didYouMean(std::string_view word, std::span<const std::string> candidates);

/// Local time of `usec` microseconds since 1970, as 2026-01-31 17:04:05; with `.123456` when `microseconds` is set.
std::string localTime(std::int64_t usec, bool microseconds = false);

/// A span of `usec` microseconds with a unit that suits its size, as 340 us, 5.8 ms or 1.2 s.
std::string humanDuration(std::int64_t usec);

/// A number of bytes with a unit that suits its size, as 512 B, 4.1 KiB or 5.3 MiB.
std::string humanBytes(std::int64_t bytes);

/// "root (0)", or only the number if this system does not know the user.
std::string userName(std::int64_t uid);

} // namespace btfd::btfctl
