#include "btfctl/failure_text.h"

#include "btfctl/fields.h"
#include "btfctl/text.h"
#include "btfctl/typed_names.h"

#include <algorithm>
#include <vector>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

/// The field that an InvalidParameter is about. Of an Attach of `load --attach-all`, which adds "program" to the error,
/// it is called as if it were of the Load: it takes an --attach to mend it.
std::string parameterOf(const json& parameters) {
  constexpr std::string_view kTarget = "target.";
  const std::string path = textField(parameters, "parameter");
  const std::string program = textField(parameters, "program");
  return program.empty() || !path.starts_with(kTarget)
             ? path
             : "programs." + program + ".attach[0]." + path.substr(kTarget.size());
}

/// The errors of org.varlink.service have no text of their own.
std::string varlinkMessage(const Failure& failure) {
  constexpr std::string_view kOtherVersion = "; it and btfctl are of different versions";
  const json& parameters = failure.parameters;
  if (failure.name == "org.varlink.service.PermissionDenied") {
    return "the daemon's policy does not allow it";
  }
  if (failure.name == "org.varlink.service.InvalidParameter") {
    // "reason" is what btfd and systemd's services add to the standard's one field.
    const std::string typed = typedFor(parameterOf(parameters));
    const std::string reason = textField(parameters, "reason");
    return reason.empty() ? "the daemon does not accept the value of " + typed : typed + ": " + withTypedKeys(reason);
  }
  if (failure.name == "org.varlink.service.MethodNotFound" ||
      failure.name == "org.varlink.service.MethodNotImplemented") {
    return "the daemon has no method " + textField(parameters, "method") + std::string(kOtherVersion);
  }
  if (failure.name == "org.varlink.service.InterfaceNotFound") {
    return "who answers on this socket does not speak " + textField(parameters, "interface") + ": is it btfd's?";
  }
  const std::string fields = parameters.empty() ? "" : " " + printable(dumped(parameters));
  return "error " + printable(failure.name) + fields;
}

std::vector<std::string> texts(const json& array) {
  std::vector<std::string> words;
  for (const json& entry : array) {
    if (entry.is_string()) {
      words.push_back(printable(entry.get_ref<const std::string&>()));
    }
  }
  return words;
}

std::string messageOf(const Failure& failure) {
  std::string message = textField(failure.parameters, "message");
  if (message.empty()) {
    return varlinkMessage(failure);
  }
  const std::vector<std::string> near = texts(field(failure.parameters, "nearMisses"));
  if (!near.empty() && message.find(near.front()) == std::string::npos) {
    message += "; did you mean " + joinedWithOr(near) + "?";
  }
  return message;
}

/// The last `count` lines of `text`.
std::string_view lastLines(std::string_view text, std::size_t count) {
  std::size_t begin = text.ends_with('\n') ? text.size() - 1 : text.size();
  for (; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && --count == 0) {
      break;
    }
  }
  return text.substr(begin);
}

std::size_t lineCount(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n')) + (text.ends_with('\n') ? 0 : 1);
}

std::string verifierLog(const json& parameters, bool verbose) {
  constexpr std::size_t kShownLines =
      20; // what the verifier refuses is at the end, and the error before it stays in sight
  const json& log = field(parameters, "verifierLog");
  if (!log.is_string() || log.get_ref<const std::string&>().empty()) {
    return {};
  }
  std::string_view shown = log.get_ref<const std::string&>();
  const std::string program = textField(parameters, "program");
  std::string title = "  verifier log" + (program.empty() ? "" : " of program " + program);
  if (const std::size_t lines = lineCount(shown); !verbose && lines > kShownLines) {
    shown = lastLines(shown, kShownLines);
    title +=
        ", the last " + std::to_string(kShownLines) + " of " + std::to_string(lines) + " lines (--verbose shows all)";
  }
  return title + ":\n" + indented(printable(shown, Lines::Keep), 4);
}

std::string libbpfLog(const json& parameters, bool verbose) {
  const json& log = field(parameters, "libbpfLog");
  if (!log.is_array() || log.empty()) {
    return {};
  }
  if (!verbose) {
    return "  (--verbose shows what libbpf said)\n";
  }
  std::string text = "  libbpf said:\n";
  for (const json& line : log) {
    if (line.is_string()) {
      text += indented(printable(line.get_ref<const std::string&>(), Lines::Keep), 4);
    }
  }
  return text;
}

} // namespace

std::string failureText(const Failure& failure, std::string_view subject, bool verbose) {
  std::string text = "btfctl: " + std::string(subject) + ": " + messageOf(failure) + "\n";
  text += verifierLog(failure.parameters, verbose);
  text += libbpfLog(failure.parameters, verbose);
  if (failure.name == "io.btfd.DeadlineExceeded") {
    text += "  (--deadline gives it more time, up to the limit of the daemon's configuration)\n";
  }
  return text;
}

std::string failureDocument(const Failure& failure) {
  return dumped({{"error", failure.name}, {"parameters", failure.parameters}}) + "\n";
}

} // namespace btfd::btfctl
