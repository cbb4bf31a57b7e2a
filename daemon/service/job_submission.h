#pragma once

#include "kernel_btf.h"
#include "varlink/call.h"
#include "worker_pool.h"

#include <chrono>
#include <functional>
#include <memory>

namespace btfd::service {

/// Has jobs done for calls. Where a worker finds that its job needs kernel BTF, which nobody has needed before, that is
/// built, and the job done again in what is left of its time. For the io_context's thread.
class JobSubmission {
 public:
  using Outcome = loader::Outcome<loader::ChannelMessage>;

  JobSubmission(WorkerPool& workers, KernelBtf& kernelBtf) : workers_(workers), kernelBtf_(kernelBtf) {}

  /// Has `job`, whose `done` is not used, done for `call`, and calls `done`. If the client disconnects before, the job
  /// is cancelled, and `abandoned` is called instead.
  void submit(std::shared_ptr<varlink::Call> call, Job job, std::function<void(Outcome&&)> done,
              std::function<void()> abandoned);

 private:
  struct Submitted;

  void hand(const std::shared_ptr<Submitted>& submitted, Job job);
  void finished(const std::shared_ptr<Submitted>& submitted, Outcome outcome, Job job);

  WorkerPool& workers_;
  KernelBtf& kernelBtf_;
};

} // namespace btfd::service
