#include "btfctl/outcome.h"

#include <algorithm>
#include <array>
#include <utility>

namespace btfd::btfctl {
namespace {

struct NamedStatus {
  std::string_view name;
  ExitStatus status;
};

constexpr std::array kStatusByError{
    NamedStatus{"io.btfd.NoSuchObject", ExitStatus::NotFound},
    NamedStatus{"io.btfd.NoSuchLink", ExitStatus::NotFound},
    NamedStatus{"io.btfd.NoSuchName", ExitStatus::NotFound},
    NamedStatus{"io.btfd.NoSuchKey", ExitStatus::NotFound},
    NamedStatus{"io.btfd.NotOwner", ExitStatus::Denied},
    NamedStatus{"org.varlink.service.PermissionDenied", ExitStatus::Denied},
    NamedStatus{"io.btfd.DeadlineExceeded", ExitStatus::TryAgain},
    NamedStatus{"io.btfd.WorkerLost", ExitStatus::TryAgain},
    NamedStatus{"io.btfd.Busy", ExitStatus::TryAgain},
};

std::string ownName(ExitStatus status) {
  switch (status) {
  case ExitStatus::Usage:
    return "btfctl.Usage";
  case ExitStatus::Unreachable:
    return "btfctl.Unreachable";
  case ExitStatus::NotFound:
    return "btfctl.NotFound";
  case ExitStatus::Denied:
    return "btfctl.PermissionDenied";
  default:
    return "btfctl.Failed";
  }
}

} // namespace

ExitStatus exitStatusOf(std::string_view name) {
  const auto* found = std::ranges::find(kStatusByError, name, &NamedStatus::name);
  return found == kStatusByError.end() ? ExitStatus::Failed : found->status;
}

std::string exitStatusHelp() {
  return "Exit status:\n"
         "  0  done\n"
         "  1  the daemon refused, or the operation failed\n"
         "  2  the command line is wrong\n"
         "  3  the daemon cannot be reached, or went away\n"
         "  4  no such object, link, program, map or variable; or somebody unloaded the object that is held\n"
         "  5  not allowed: policy, another user's object, or no access to the socket\n"
         "  6  deadline exceeded, worker lost or daemon busy: trying again may help\n";
}

std::unexpected<Failure> refused(std::string name, nlohmann::json parameters) {
  const ExitStatus status = exitStatusOf(name);
  return std::unexpected(Failure{status, std::move(name), std::move(parameters)});
}

std::unexpected<Failure> failed(ExitStatus status, std::string message) {
  return std::unexpected(Failure{status, ownName(status), {{"message", std::move(message)}}});
}

} // namespace btfd::btfctl
