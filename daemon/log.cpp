#include "log.h"

#include "base/text.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

namespace btfd {

namespace {

/// Whether standard error is the journal: $JOURNAL_STREAM has its device and inode (systemd.exec(5)).
bool stderrIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM"); // NOLINT(concurrency-mt-unsafe): at start, one thread
  struct stat status{};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) < 0) {
    return false;
  }
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

/// The daemon's log lines, each of which is one line: what clients name may have line breaks and more in it.
class EscapingLogger : public spdlog::logger {
 public:
  using logger::logger;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text = escaped({message.payload.data(), message.payload.size()});
    spdlog::details::log_msg line(message);
    line.payload = spdlog::string_view_t(text.data(), text.size());
    logger::sink_it_(line);
  }
};

} // namespace

Result<void> setUpLog(const config::Config::Log& log) {
  const bool journal =
      log.target == config::LogTarget::Journal || (log.target == config::LogTarget::Auto && stderrIsJournal());
  try {
    if (journal) {
      spdlog::set_default_logger(
          std::make_shared<EscapingLogger>("btfd", std::make_shared<spdlog::sinks::systemd_sink_st>("btfd")));
    } else {
      spdlog::set_default_logger(
          std::make_shared<EscapingLogger>("btfd", std::make_shared<spdlog::sinks::stderr_sink_st>()));
      spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %n[%P] %l: %v");
    }
  } catch (const spdlog::spdlog_ex& error) {
    return fail(std::string("cannot set up the log: ") + error.what());
  }
  setLogLevel(log.level);
  return {};
}

void setLogLevel(const std::string& name) {
  spdlog::set_level(spdlog::level::from_str(name));
}

int logPriority() {
  switch (spdlog::get_level()) {
  case spdlog::level::trace:
  case spdlog::level::debug:
    return LOG_DEBUG;
  case spdlog::level::info:
    return LOG_INFO;
  case spdlog::level::warn:
    return LOG_WARNING;
  case spdlog::level::err:
    return LOG_ERR;
  default:
    return LOG_CRIT;
  }
}

void setLogPriority(int priority) {
  switch (priority) {
  case LOG_DEBUG:
    return spdlog::set_level(spdlog::level::debug);
  case LOG_INFO:
  case LOG_NOTICE:
    return spdlog::set_level(spdlog::level::info);
  case LOG_WARNING:
    return spdlog::set_level(spdlog::level::warn);
  case LOG_ERR:
    return spdlog::set_level(spdlog::level::err);
  default:
    return spdlog::set_level(spdlog::level::critical);
  }
}

} // namespace btfd
