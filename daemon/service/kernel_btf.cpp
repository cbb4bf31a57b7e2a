#include "kernel_btf.h"

#include <boost/asio/post.hpp>
#include <spdlog/spdlog.h>

#include <utility>

namespace btfd::service {

namespace asio = boost::asio;

namespace {

/// How long modules must have been quiet before the new ones are read: udev loads them in swarms at boot.
constexpr std::chrono::milliseconds kSettleTime{200};

/// How long a failure is remembered: what is missing does not appear between two requests.
constexpr std::chrono::seconds kRetryAfter{5};

void logSpec(const btf::KernelSpec& spec) {
  spdlog::info("kernel BTF generation {}: {} types of vmlinux from {}{}, {} modules, parsed in {} us, indexed in {} us",
               spec.generation(), btf__type_cnt(&spec.vmlinux()), spec.path(), spec.mapped() ? " (mapped)" : "",
               spec.modules().size(), spec.parseDuration().count(), spec.indexDuration().count());
  for (const btf::ModuleBtf& module : spec.modules()) {
    if (!module.btf) {
      spdlog::warn("BTF of module {} is left out: {}", module.name, module.error);
    }
  }
}

} // namespace

KernelBtf::KernelBtf(asio::io_context& context, btf::KernelSpecSource source)
    : context_(context), source_(std::move(source)), settleTimer_(context) {}

KernelBtf::~KernelBtf() {
  if (builder_.joinable()) {
    builder_.join();
  }
}

Result<void> KernelBtf::buildNow() {
  ++buildCount_;
  auto built = btf::KernelSpec::build(source_, buildCount_);
  if (!built) {
    error_ = built.error().message;
    failedAt_ = std::chrono::steady_clock::now();
    return std::unexpected(std::move(built.error()));
  }
  spec_ = std::move(*built);
  logSpec(*spec_);
  return {};
}

void KernelBtf::ensure(Waiter then) {
  if (spec_) {
    then(spec_);
    return;
  }
  const bool failedJustNow = !error_.empty() && std::chrono::steady_clock::now() - failedAt_ < kRetryAfter;
  if (failedJustNow && !building_) {
    then(fail(error_));
    return;
  }
  waiters_.push_back(std::move(then));
  build();
}

void KernelBtf::modulesChanged() {
  settleTimer_.expires_after(kSettleTime);
  settleTimer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && spec_ && outdated()) {
      build();
    }
  });
}

std::string KernelBtf::reason() const {
  if (spec_) {
    return {};
  }
  return error_.empty() ? "nothing has needed it yet (kernelBtf.load is on-demand)" : error_;
}

void KernelBtf::build() {
  if (std::exchange(building_, true)) {
    changedMeanwhile_ = true;
    return;
  }
  ++buildCount_;
  if (hooks_.buildBegins) {
    hooks_.buildBegins();
  }
  builder_ = std::thread([this, generation = buildCount_] {
    auto built = btf::KernelSpec::build(source_, generation);
    auto result = std::make_shared<Result<std::shared_ptr<const btf::KernelSpec>>>(std::move(built));
    asio::post(context_, [this, result] { finished(std::move(*result)); });
  });
}

void KernelBtf::finished(Result<std::shared_ptr<const btf::KernelSpec>> result) {
  builder_.join();
  building_ = false;
  if (result) {
    spec_ = *result;
    error_.clear();
    logSpec(*spec_);
    if (hooks_.built) {
      hooks_.built(spec_);
    }
  } else {
    error_ = result.error().message;
    failedAt_ = std::chrono::steady_clock::now();
    spdlog::warn("no kernel BTF: {}", error_);
  }
  if (hooks_.buildEnded) {
    hooks_.buildEnded();
  }
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    waiter(result);
  }
  if (std::exchange(changedMeanwhile_, false) && spec_ && outdated()) {
    build();
  }
}

bool KernelBtf::outdated() const {
  if (!source_.modules) {
    return false;
  }
  const auto shown = btf::listModules(source_.directory);
  const auto resident = spec_->modules();
  return shown.size() != resident.size() ||
         !std::equal(shown.begin(), shown.end(), resident.begin(), [](const auto& file, const btf::ModuleBtf& module) {
           return file.first == module.name && file.second == module.bytes;
         });
}

} // namespace btfd::service
