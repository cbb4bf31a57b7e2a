#include "private_daemon.h"

#include "base/unique_fd.h"
#include "varlink/client.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace btfd::bench {

namespace {

using std::chrono::milliseconds;

/// A start includes the parsing of the kernel's BTF and the fork of the workers.
constexpr milliseconds kStartTimeout{20'000};
/// The daemon waits for running jobs when it is asked to stop; the bench leaves none.
constexpr milliseconds kStopTimeout{5'000};
constexpr milliseconds kPollInterval{5};

std::vector<std::string> environmentWith(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  for (const auto& [name, value] : added) {
    all.push_back(name + "=" + value);
  }
  return all;
}

std::vector<char*> pointersTo(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) {
    pointers.push_back(string.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// A bpffs of the daemon's own, in a mount namespace of its own, so that nothing stays behind however it ends. Without
/// the privilege for it the daemon gets a plain directory.
void mountBpffs(const char* directory) {
  if (::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) {
    static_cast<void>(::mount("bpf", directory, "bpf", 0, nullptr));
  }
}

} // namespace

Result<PrivateDaemon> PrivateDaemon::start(const std::filesystem::path& binary,
                                           const std::map<std::string, std::string>& environment) {
  if (::access(binary.c_str(), X_OK) != 0) {
    return failErrno("no daemon to measure: " + binary.string() +
                         " (build it, or name a running one with --socket, or leave it out with --without-daemon)",
                     errno);
  }
  PrivateDaemon daemon;
  if (auto done = daemon.prepareDirectory(); !done) {
    return std::unexpected(std::move(done.error()));
  }
  if (auto done = daemon.spawn(binary, environment); !done) {
    return std::unexpected(std::move(done.error()));
  }
  if (auto done = daemon.waitUntilReady(); !done) {
    return std::unexpected(std::move(done.error()));
  }
  return daemon;
}

PrivateDaemon::PrivateDaemon(PrivateDaemon&& other) noexcept
    : directory_(std::exchange(other.directory_, {})), process_(std::exchange(other.process_, -1)) {}

PrivateDaemon::~PrivateDaemon() {
  if (process_ > 0) {
    ::kill(process_, SIGTERM);
    for (milliseconds waited{0}; waited < kStopTimeout; waited += kPollInterval) {
      if (::waitpid(process_, nullptr, WNOHANG) == process_) {
        process_ = -1;
        break;
      }
      std::this_thread::sleep_for(kPollInterval);
    }
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }
  if (!directory_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
}

Result<void> PrivateDaemon::prepareDirectory() {
  std::string directory = (std::filesystem::temp_directory_path() / "btfd-bench.XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) {
    return failErrno("mkdtemp " + directory, errno);
  }
  directory_ = directory;
  std::filesystem::create_directory(directory_ / "state");
  std::filesystem::create_directory(directory_ / "bpffs");
  std::ofstream config(directory_ / "btfd.json");
  config << R"({"socket": {"group": ""}, "log": {"level": "warning", "target": "stderr"}})" << '\n';
  config.close();
  return config ? Result<void>() : fail("cannot write to " + directory_.string());
}

Result<void> PrivateDaemon::spawn(const std::filesystem::path& binary,
                                  const std::map<std::string, std::string>& environment) {
  const std::string bpffs = directory_ / "bpffs";
  std::vector<std::string> arguments{binary,       "--config",    directory_ / "btfd.json", "--socket",
                                     socketPath(), "--state-dir", directory_ / "state",     "--bpffs",
                                     bpffs};
  std::vector<std::string> variables = environmentWith(environment);
  const std::vector<char*> argumentPointers = pointersTo(arguments);
  const std::vector<char*> variablePointers = pointersTo(variables);
  const UniqueFd log(::open((directory_ / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!log) {
    return failErrno("cannot create the daemon's log", errno);
  }
  process_ = ::fork();
  if (process_ < 0) {
    return failErrno("fork", errno);
  }
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(log.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    mountBpffs(bpffs.c_str());
    ::execve(argumentPointers.front(), argumentPointers.data(), variablePointers.data());
    ::_exit(127);
  }
  return {};
}

Result<void> PrivateDaemon::waitUntilReady() {
  for (milliseconds waited{0}; waited < kStartTimeout; waited += kPollInterval) {
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      process_ = -1;
      return fail("the daemon ended at its start (status " + std::to_string(status) + "):\n" + endOfLog());
    }
    if (varlink::Client::connect(socketPath())) {
      return {};
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  return fail("the daemon does not accept connections after " + std::to_string(kStartTimeout.count()) + " ms:\n" +
              endOfLog());
}

std::string PrivateDaemon::endOfLog() const {
  constexpr std::size_t kShown = 4096;
  std::ifstream file(directory_ / "log");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string log = std::move(text).str();
  return log.substr(log.size() > kShown ? log.size() - kShown : 0);
}

} // namespace btfd::bench
