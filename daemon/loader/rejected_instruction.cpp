#include "rejected_instruction.h"

#include "base/text.h"

#include <charconv>

namespace btfd::loader {

namespace {

/// Bytes of a source line, or of an instruction, that are shown.
constexpr std::size_t kShownBytes = 160;

/// Takes the last line off `log`.
std::string_view takeLastLine(std::string_view& log) {
  while (log.ends_with('\n') || log.ends_with('\0')) {
    log.remove_suffix(1);
  }
  const auto newline = log.rfind('\n');
  const std::string_view line = log.substr(newline + 1); // npos + 1 is 0: the only line
  log = newline == std::string_view::npos ? std::string_view{} : log.substr(0, newline);
  return line;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const auto begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view{}
                                         : text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// Reads a line such as "12: (61) r0 = *(u32 *)(r1 +0)        ; R0=scalar()" (kernel/bpf/disasm.c, print_bpf_insn; what
/// is behind the semicolon, since Linux 5.18, are registers after it).
std::optional<RejectedInstruction> readInstruction(std::string_view line) {
  RejectedInstruction found;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), found.number);
  const std::string_view rest = line.substr(static_cast<std::size_t>(end - line.data()));
  constexpr std::size_t kCodeLength = std::string_view(": (61) ").size();
  if (error != std::errc{} || rest.size() <= kCodeLength || !rest.starts_with(": (") || rest.substr(5, 2) != ") ") {
    return std::nullopt;
  }
  found.text = trimmed(rest.substr(kCodeLength, rest.find("; ") - kCodeLength));
  return found;
}

} // namespace

std::optional<RejectedInstruction> findRejectedInstruction(std::string_view log) {
  std::optional<RejectedInstruction> found;
  while (!log.empty()) {
    const std::string_view line = takeLastLine(log);
    if (!found) {
      found = readInstruction(line);
    } else if (line.starts_with("; ")) {
      // Only where it changes does the log have the line of source.
      found->source = trimmed(line.substr(2));
      break;
    }
  }
  return found;
}

std::string inWords(const RejectedInstruction& instruction) {
  std::string text =
      "instruction " + std::to_string(instruction.number) + ", " + showable(instruction.text, kShownBytes);
  if (instruction.source.empty()) {
    return text;
  }
  const auto at = instruction.source.rfind(" @ ");
  const std::string_view line = trimmed(instruction.source.substr(0, at));
  const std::string_view place = at == std::string_view::npos ? "the source line" : instruction.source.substr(at + 3);
  return text + ", of " + showable(place, kShownBytes) + ": " + showable(line, kShownBytes);
}

} // namespace btfd::loader
