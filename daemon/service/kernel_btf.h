#pragma once

#include "base/error.h"
#include "btf/kernel_spec.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace btfd::service {

/// The resident spec of the daemon: built once, on demand or at start, and again when modules come and go.
///
/// Building takes milliseconds, so it is done in a thread of its own; callbacks come on the io_context's thread, which
/// is also the only one to call this.
class KernelBtf {
 public:
  struct Hooks {
    /// Before and after another thread runs.
    std::function<void()> buildBegins;
    std::function<void()> buildEnded;
    /// There is a new spec, for workers to be forked with.
    std::function<void(std::shared_ptr<const btf::KernelSpec>)> built;
  };

  KernelBtf(boost::asio::io_context& context, btf::KernelSpecSource source);
  KernelBtf(const KernelBtf&) = delete;
  KernelBtf& operator=(const KernelBtf&) = delete;
  ~KernelBtf();

  void setHooks(Hooks hooks) { hooks_ = std::move(hooks); }

  /// Builds at once, in the caller's thread: for the start of the daemon.
  Result<void> buildNow();

  /// Calls `then` with the spec, building it first if nobody has. If it could not be built, `then` gets the error; the
  /// next to ask tries again, once `kRetryAfter` has passed.
  void ensure(std::function<void(Result<std::shared_ptr<const btf::KernelSpec>>)> then);

  /// Modules came or went: looks after a moment, as they come in swarms, and builds a new generation if the kernel
  /// shows other modules than the spec has. Does nothing before the first spec was asked for.
  void modulesChanged();

  /// The spec, or null.
  [[nodiscard]] const std::shared_ptr<const btf::KernelSpec>& spec() const { return spec_; }

  /// Why there is none: what went wrong, or that nobody has needed it yet.
  [[nodiscard]] std::string reason() const;

  /// How often BTF was parsed.
  [[nodiscard]] std::uint64_t buildCount() const { return buildCount_; }

 private:
  using Waiter = std::function<void(Result<std::shared_ptr<const btf::KernelSpec>>)>;

  void build();
  void finished(Result<std::shared_ptr<const btf::KernelSpec>> result);
  [[nodiscard]] bool outdated() const;

  boost::asio::io_context& context_;
  btf::KernelSpecSource source_;
  Hooks hooks_;
  std::shared_ptr<const btf::KernelSpec> spec_;
  std::string error_;
  std::chrono::steady_clock::time_point failedAt_;
  std::uint64_t buildCount_ = 0;
  bool building_ = false;
  bool changedMeanwhile_ = false;
  std::vector<Waiter> waiters_;
  boost::asio::steady_timer settleTimer_;
  std::thread builder_;
};

} // namespace btfd::service
