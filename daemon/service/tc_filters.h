#pragma once

#include "loader/failure.h"
#include "registry/registry.h"
#include "worker_pool.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace btfd::service {

/// Makes filters of tc and removes them, which no descriptor does: also if the worker that makes one dies. And the
/// clsact qdiscs that they are on: one that was made for them goes with the last of them, unless others use it. One job
/// at a time, so that nobody makes a filter on a qdisc that is being removed. For the io_context's thread.
class TcFilters {
 public:
  /// A link that was planned, which is to be a filter, and its program. The link has to stay where it is until the job
  /// is done.
  struct Planned {
    registry::Link* link = nullptr;
    UniqueFd program;
  };

  /// A filter that is attached.
  struct Filter {
    TcFilter place;
    UniqueFd networkNamespace;
  };

  using Done = std::function<void(loader::Outcome<void>)>;

  explicit TcFilters(WorkerPool& workers) : workers_(workers) {}

  /// Whether any of `links` is a filter.
  static bool anyIn(const std::vector<registry::Link>& links);

  /// Takes the filters off `links`.
  static std::vector<Filter> takeFrom(std::vector<registry::Link>& links);

  /// Makes the filters, all or none; on failure the links have none any more. `done` is never called from within.
  void attach(std::vector<Planned> planned, Party party, std::chrono::milliseconds deadline, Done done);

  /// Another program for a filter.
  struct Replacement {
    /// The link, or null if it is gone by the time.
    std::function<registry::Link*()> find;
    UniqueFd program;
    std::uint32_t programId = 0;
    std::string name;
  };

  /// Has a filter that is attached run another program, without a gap. `done` is never called from within.
  void replace(Replacement replacement, Party party, std::chrono::milliseconds deadline, Done done);

  /// Removes filters, and calls `then`. What cannot be removed is logged.
  void remove(std::vector<Filter> filters, Party party, std::function<void()> then);

  /// Ends those that are being made; no more are. Calls `then` when nothing is under way that was begun before.
  void close(std::function<void()> then);

 private:
  struct Attaching;
  struct Removing;
  struct Replacing;

  /// An interface: numbers of its network namespace and of its own.
  using Interface = std::pair<std::uint64_t, int>;

  /// What the daemon has there.
  struct Qdisc {
    std::size_t filters = 0;
    /// Whether it is there because of them.
    bool made = false;
  };

  static Interface interfaceOf(const TcFilter& filter) { return {filter.networkNamespace, filter.interface}; }

  void takeTurn(std::function<void()> turn);
  void endTurn();
  void makeAll(const std::shared_ptr<Attaching>& attaching);
  void made(const std::shared_ptr<Attaching>& attaching, loader::Outcome<loader::ChannelMessage> outcome);
  void fail(const std::shared_ptr<Attaching>& attaching, loader::Failure failure);
  void undo(const std::shared_ptr<Attaching>& attaching, loader::Failure failure);
  loader::Outcome<void> choosePlace(registry::Link& link);
  void forget(const TcFilter& place);
  void replaceOne(const std::shared_ptr<Replacing>& replacing);
  void replaced(const std::shared_ptr<Replacing>& replacing, const loader::Outcome<void>& outcome);
  void removeAll(const std::shared_ptr<Removing>& removing);

  WorkerPool& workers_;
  std::deque<std::function<void()>> turns_;
  bool busy_ = false;
  bool closed_ = false;
  std::map<Interface, Qdisc> qdiscs_;
  /// The places of all that are attached, or may be.
  std::vector<TcFilter> places_;
};

} // namespace btfd::service
