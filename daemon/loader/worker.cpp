#include "worker.h"

#include "attach_job.h"
#include "btf_job.h"
#include "channel.h"
#include "check_job.h"
#include "describe_job.h"
#include "descriptors.h"
#include "disassemble_job.h"
#include "load_job.h"
#include "map_job.h"
#include "read_job.h"
#include "tc_job.h"
#include "update_job.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <utility>

#include <fcntl.h>
#include <linux/close_range.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace btfd::loader {

namespace {

/// Where the channel is moved to, so that everything above it can be closed.
constexpr int kChannelDescriptor = 3;

/// The front's handlers write to a pipe of the front's: they must be gone before its descriptor's number is reused.
void forgetSignalHandlers() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action{};
    action.sa_handler = SIG_DFL; // NOLINT(cppcoreguidelines-pro-type-union-access)
    ::sigaction(number, &action, nullptr);
  }
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN; // NOLINT(cppcoreguidelines-pro-type-union-access)
  // A terminal's ^C reaches the whole process group; workers end when the front closes their channel.
  ::sigaction(SIGINT, &ignore, nullptr);
  ::sigaction(SIGTERM, &ignore, nullptr);
  ::sigaction(SIGHUP, &ignore, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void closeAbove(int descriptor) {
  // Linux 5.9; the oldest kernel that btfd is for is 5.10.
  ::close_range(static_cast<unsigned>(descriptor) + 1, ~0U, 0);
}

/// Leaves the worker standard error and its channel.
UniqueFd keepOnly(UniqueFd channel) {
  if (channel.get() != kChannelDescriptor) {
    ::dup3(channel.get(), kChannelDescriptor, O_CLOEXEC);
  } else {
    static_cast<void>(channel.release());
  }
  closeAbove(kChannelDescriptor);
  if (channel) {
    static_cast<void>(channel.release()); // closed with the others, or about to be standard input
  }
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) { // without it, say in a bare chroot, they stay as they are
    ::dup2(null.get(), STDIN_FILENO);
    ::dup2(null.get(), STDOUT_FILENO);
  }
  return UniqueFd(kChannelDescriptor);
}

nlohmann::json failureBody(Failure failure) {
  nlohmann::json body;
  body["error"] = std::move(failure.error);
  body["parameters"] = std::move(failure.parameters);
  return body;
}

/// A job about something large must not leave its process as large as that: it has many jobs to come.
void giveMemoryBack() {
  constexpr std::size_t kMostUnused = std::size_t{8} << 20;
  if (::mallinfo2().fordblks > kMostUnused) {
    ::malloc_trim(0);
  }
}

class Worker {
 public:
  Worker(UniqueFd channel, const WorkerSetup& setup) : channel_(std::move(channel)), limits_(setup.limits) {}

  void run() {
    ChannelReader reader;
    while (true) {
      auto message = reader.receive(channel_);
      if (!message) {
        return; // the front is gone or does not want this worker any more
      }
      if (*message) {
        if (!answer(**message)) {
          return;
        }
        message->reset();
        giveMemoryBack();
        // libbpf keeps the perf event's descriptor of an attachment, and may have others left after an error.
        closeAbove(kChannelDescriptor);
      }
    }
  }

 private:
  bool answer(ChannelMessage& message) {
    RequestDescriptors descriptors(message.descriptors, message.body.value("ofClient", message.descriptors.size()));
    const auto kind = message.body.value("job", "");
    if (kind == "release") {
      runReleaseJob(message.body, descriptors);
      message.descriptors.clear(); // what this job is for: the answer says that it has happened
      return sendMessage(channel_, nlohmann::json::object(), {}).has_value();
    }
    auto reply = run(kind, message.body, descriptors);
    // Closing what came from a client may take as long as the client likes: it has to happen in the time of the job,
    // before the front counts on this worker for another.
    message.descriptors.clear();
    if (!reply) {
      return sendMessage(channel_, failureBody(shortened(std::move(reply.error()))), {}).has_value();
    }
    const auto sent = sendMessage(channel_, reply->body, reply->descriptors);
    if (!sent && sent.error().code == EMSGSIZE) {
      return sendMessage(channel_, failureBody(limitExceeded(sent.error().message, "messageBytes", kMaximumBody)), {})
          .has_value();
    }
    return sent.has_value();
  }

  Outcome<JobReply> run(const std::string& kind, const nlohmann::json& request, RequestDescriptors& descriptors) {
    if (kind == "load") {
      return runLoadJob(request, descriptors, limits_, verifierLog_);
    }
    if (kind == "check") {
      return runCheckJob(request, descriptors, limits_);
    }
    if (kind == "tcAttach") {
      return runTcAttachJob(request, descriptors);
    }
    if (kind == "tcDetach") {
      return runTcDetachJob(request, descriptors);
    }
    if (kind == "tcReplace") {
      return runTcReplaceJob(request, descriptors);
    }
    if (kind == "update") {
      return runUpdateJob(request, descriptors);
    }
    if (kind == "btf") {
      return runBtfJob(request, descriptors);
    }
    if (kind == "disassemble") {
      return runDisassembleJob(request, descriptors);
    }
    if (kind == "map") {
      return runMapJob(request, descriptors);
    }
    if (kind == "read") {
      return runReadJob(request, descriptors);
    }
    return kind == "describe" ? runDescribeJob(request, descriptors) : runAttachJob(request, descriptors);
  }

  UniqueFd channel_;
  JobLimits limits_;
  VerifierLogBuffer verifierLog_;
};

} // namespace

void runWorker(UniqueFd channel, const WorkerSetup& setup) {
  forgetSignalHandlers();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "btfd-worker");
  setKernelSpec(setup.kernelSpecState, setup.kernelSpec.get());
  // Outlives the exception: closing the channel tells the front, which would kill the worker before it says how it
  // ended.
  Worker worker(keepOnly(std::move(channel)), setup);
  try {
    worker.run();
  } catch (const std::exception& exception) {
    // Out of memory, or a bug: the front reports the worker as lost, and this is the trace that is left of why.
    std::fprintf(stderr, "btfd-worker: %s\n", exception.what()); // NOLINT(cppcoreguidelines-pro-type-vararg)
    ::_exit(EXIT_FAILURE);
  }
  ::_exit(EXIT_SUCCESS);
}

} // namespace btfd::loader
