#include "btfctl/failure_text.h"

#include "btfctl/fields.h"
#include "btfctl/text.h"

#include <vector>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

/// The errors of org.varlink.service have no text of their own.
std::string varlinkMessage(const Failure& failure) {
  constexpr std::string_view kOtherVersion = "; it and btfctl are of different versions";
  const json& parameters = failure.parameters;
  if (failure.name == "org.varlink.service.PermissionDenied") {
    return "the daemon's policy does not allow it";
  }
  if (failure.name == "org.varlink.service.InvalidParameter") {
    // "reason" is what btfd and systemd's services add to the standard's one field.
    const std::string reason = textField(parameters, "reason");
    return reason.empty() ? "the daemon does not accept the value of '" + textField(parameters, "parameter") + "'"
                          : textField(parameters, "parameter") + ": " + reason;
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

std::string verifierLog(const json& parameters) {
  const json& log = field(parameters, "verifierLog");
  if (!log.is_string() || log.get_ref<const std::string&>().empty()) {
    return {};
  }
  const std::string program = textField(parameters, "program");
  return "  verifier log" + (program.empty() ? "" : " of program " + program) + ":\n" +
         indented(printable(log.get_ref<const std::string&>(), Lines::Keep), 4);
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
  text += verifierLog(failure.parameters);
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
