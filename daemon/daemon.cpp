#include "daemon.h"

#include "base/text.h"
#include "log.h"
#include "service/capabilities.h"
#include "service/object_json.h"
#include "varlink/embedded.h"
#include "varlink/listen.h"
#include "varlink/system_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <initializer_list>
#include <ranges>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace btfd {

namespace {

/// How long a stop waits for programs to be detached before it leaves that to the end of the process.
constexpr std::chrono::seconds kStopTimeout{5};

btf::KernelSpecSource specSource(const config::Config& config) {
  btf::KernelSpecSource source;
  source.fallbackPath = config.kernelBtf.path;
  source.modules = config.kernelBtf.modules;
  return source;
}

service::WorkerPool::Options poolOptions(const config::Config& config, Closers& closers) {
  service::WorkerPool::Options options;
  const std::size_t cores = std::thread::hardware_concurrency();
  options.count = config.workers.count != 0 ? config.workers.count : std::max<std::size_t>(2, cores);
  // Long verifications share the cores; past this, more at once would only take memory.
  options.maximumCount = options.count * 4;
  options.queueLimit = config.limits.queuedRequests;
  options.closer = &closers.forSockets();
  return options;
}

loader::WorkerSetup workerSetup(const config::Config& config, std::shared_ptr<const btf::KernelSpec> spec) {
  loader::WorkerSetup setup;
  setup.kernelSpecState = spec ? loader::KernelSpecState::lent : loader::KernelSpecState::notBuilt;
  setup.kernelSpec = std::move(spec);
  setup.limits.objectBytes = config.limits.objectBytes;
  setup.limits.verifierLogBytes = config.limits.verifierLogBytes;
  setup.limits.descriptionBytes = service::kDescriptionLimit;
  return setup;
}

varlink::ServerOptions serverOptions(const config::Config& config, Closers& closers) {
  varlink::ServerOptions options;
  options.closers = &closers;
  options.limits.messageBytes = config.limits.messageBytes;
  options.limits.connections = config.limits.connections;
  options.limits.connectionsPerUser = config.limits.connectionsPerUser;
  options.log = [](varlink::LogLevel level, const std::string& message) {
    switch (level) {
    case varlink::LogLevel::debug:
      return spdlog::debug("{}", message);
    case varlink::LogLevel::info:
      return spdlog::info("{}", message);
    case varlink::LogLevel::warning:
      return spdlog::warn("{}", message);
    case varlink::LogLevel::error:
      return spdlog::error("{}", message);
    }
  };
  return options;
}

/// The settings in which `wanted` differs from those that the daemon `started` with, and that it cannot change while it
/// runs: sockets and directories are what clients and pins refer to.
std::vector<std::string> changesForRestart(const config::Config& started, const config::Config& wanted) {
  const std::initializer_list<std::pair<const char*, bool>> settings{
      {"socket.path", started.socket.path != wanted.socket.path},
      {"socket.group", started.socket.group != wanted.socket.group},
      {"socket.mode", started.socket.mode != wanted.socket.mode},
      {"stateDirectory", started.stateDirectory != wanted.stateDirectory},
      {"bpffs", started.bpffs != wanted.bpffs},
      {"kernelBtf.load", started.kernelBtf.load != wanted.kernelBtf.load},
      {"kernelBtf.path", started.kernelBtf.path != wanted.kernelBtf.path},
      {"kernelBtf.modules", started.kernelBtf.modules != wanted.kernelBtf.modules},
      {"workers.count", started.workers.count != wanted.workers.count},
      {"limits.queuedRequests", started.limits.queuedRequests != wanted.limits.queuedRequests},
      {"limits.messageBytes", started.limits.messageBytes != wanted.limits.messageBytes},
      {"limits.connections", started.limits.connections != wanted.limits.connections},
      {"limits.connectionsPerUser", started.limits.connectionsPerUser != wanted.limits.connectionsPerUser},
      {"log.target", started.log.target != wanted.log.target},
  };
  std::vector<std::string> changed;
  for (const auto& [name, differs] : settings) {
    if (differs) {
      changed.emplace_back(name);
    }
  }
  return changed;
}

/// Each program, map and link takes a descriptor.
void raiseDescriptorLimit() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

void warnOfMissingCapabilities() {
  const auto effective = service::effectiveCapabilities();
  const std::string missing = effective ? service::missingCapabilities(*effective) : effective.error().message;
  if (!missing.empty()) {
    spdlog::warn("{}", missing);
  }
}

} // namespace

Daemon::Daemon(Options options, config::Config config, policy::Policy policy)
    : options_(std::move(options)), config_(std::move(config)), atStart_(config_), policy_(std::move(policy)),
      manager_(context_), kernelBtf_(context_, specSource(config_)),
      workers_(context_, poolOptions(config_, closers_), workerSetup(config_, nullptr),
               [this](const std::string& what) {
                 spdlog::warn("{}", what);
                 events_.emit("workerLost", what);
               }),
      loader_({.config = config_, .policy = policy_, .workers = workers_, .kernelBtf = kernelBtf_, .events = events_}),
      moduleWatch_(context_),
      varlinkService_({.vendor = "btfd", .product = "btfd", .version = BTFD_VERSION, .url = "https://varlink.org/"}),
      server_(context_, varlinkService_,
              [this] {
                varlink::ServerOptions serverSettings = serverOptions(config_, closers_);
                serverSettings.whoMayCall = policy_.whoMayConnect();
                serverSettings.authorize = [this](const varlink::Peer& peer) { return policy_.mayConnect(peer); };
                serverSettings.onConnectionClosed = [this](const varlink::Peer& peer) {
                  loader_.connectionClosed(peer);
                };
                return serverSettings;
              }()),
      signals_(context_, SIGTERM, SIGINT, SIGHUP), stopTimer_(context_) {}

Result<void> Daemon::run() {
  raiseDescriptorLimit();
  warnOfMissingCapabilities();
  if (auto started = closers_.start(); !started) {
    return started;
  }
  for (const auto step : {&Daemon::defineService, &Daemon::prepareKernelBtf, &Daemon::listen}) {
    if (auto done = (this->*step)(); !done) {
      return done;
    }
  }
  awaitSignal();
  manager_.feedWatchdog();
  manager_.ready("serving");
  spdlog::info("btfd {} serves {}", BTFD_VERSION, config_.socket.path);
  context_.run();
  loader_.objects().removePinDirectory();
  if (ownSocket_) {
    ::unlink(config_.socket.path.c_str());
  }
  return {};
}

Result<void> Daemon::defineService() {
  if (auto added = varlinkService_.addInterface(varlink::interfaceText("io.btfd")); !added) {
    return added;
  }
  loader_.addTo(varlinkService_);
  varlink::SystemServiceHooks hooks;
  hooks.reload = [this] { return reload(); };
  hooks.setLogLevel = [](int priority) { setLogPriority(priority); };
  hooks.logLevel = [] { return logPriority(); };
  if (auto added = varlink::addSystemService(varlinkService_, std::move(hooks)); !added) {
    return added;
  }
  return varlinkService_.verify();
}

Result<void> Daemon::prepareKernelBtf() {
  if (auto prepared = service::prepareBpffs(config_.bpffs); !prepared) {
    spdlog::warn("objects with maps that are pinned by name cannot be loaded: {}", prepared.error().message);
  } else {
    auto lock = service::lockBpffs(config_.bpffs);
    if (!lock) {
      return std::unexpected(std::move(lock.error()));
    }
    bpffsLock_ = std::move(*lock);
    loader_.objects().removeStalePins();
  }
  kernelBtf_.setHooks({.buildBegins = [this] { workers_.suspendForks(); },
                       .buildEnded = [this] { workers_.resumeForks(); },
                       .built =
                           [this](std::shared_ptr<const btf::KernelSpec> spec) {
                             const auto generation = spec->generation();
                             workers_.setSetup(workerSetup(config_, std::move(spec)));
                             events_.emit("kernelSpecBuilt",
                                          "kernel BTF was parsed: generation " + std::to_string(generation));
                           }});
  if (config_.kernelBtf.load == config::KernelBtfLoad::Startup) {
    if (auto built = kernelBtf_.buildNow(); built) {
      workers_.setSetup(workerSetup(config_, kernelBtf_.spec()));
    } else {
      spdlog::warn("only objects that need no kernel BTF can be loaded: {}", built.error().message);
    }
  }
  if (auto watching = moduleWatch_.start([this] { kernelBtf_.modulesChanged(); }); !watching) {
    spdlog::warn("new modules will not be noticed: {}", watching.error().message);
  }
  return workers_.start();
}

Result<void> Daemon::listen() {
  auto sockets = manager_.takeSockets();
  if (!sockets) {
    return std::unexpected(std::move(sockets.error()));
  }
  if (sockets->empty()) {
    const auto group = policy::findGroup(config_.socket.group);
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(config_.socket.path).parent_path(), ignored);
    auto socket =
        varlink::listenAt(config_.socket.path, static_cast<mode_t>(config_.socket.mode), group ? *group : std::nullopt);
    if (!socket) {
      return std::unexpected(std::move(socket.error()));
    }
    ownSocket_ = true;
    sockets->push_back(std::move(*socket));
  }
  for (UniqueFd& socket : *sockets) {
    if (auto listening = server_.listen(std::move(socket)); !listening) {
      return listening;
    }
  }
  return {};
}

void Daemon::awaitSignal() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) {
      return;
    }
    if (number == SIGHUP) {
      if (auto reloaded = reload(); !reloaded) {
        spdlog::error("the configuration stays as it was:");
        for (const auto line : std::views::split(std::string_view(reloaded.error().message), '\n')) {
          spdlog::error("{}", std::string_view(line));
        }
      }
      awaitSignal();
    } else {
      spdlog::info("stopping");
      stop();
    }
  });
}

Result<void> Daemon::reload() {
  manager_.reloading();
  auto loaded = loadConfig(options_);
  if (loaded) {
    config_.cache = loaded->cache;
    config_.limits = loaded->limits;
    config_.log = loaded->log;
    setLogLevel(config_.log.level);
    workers_.setSetup(workerSetup(config_, kernelBtf_.spec()));
    kernelBtf_.modulesChanged();
    loader_.reconfigured();
    if (const auto changed = changesForRestart(atStart_, *loaded); changed.empty()) {
      spdlog::info("read the configuration again");
    } else {
      spdlog::warn("read the configuration again; what has changed here needs a restart: {}", joined(changed));
    }
  }
  manager_.ready("serving");
  return loaded ? Result<void>{} : std::unexpected(std::move(loaded.error()));
}

void Daemon::stop() {
  manager_.stopping();
  server_.stop();
  loader_.objects().unloadAll([this] { context_.stop(); });
  stopTimer_.expires_after(kStopTimeout);
  stopTimer_.async_wait([this](const boost::system::error_code&) { context_.stop(); });
}

} // namespace btfd
