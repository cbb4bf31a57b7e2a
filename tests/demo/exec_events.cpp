// A client of btfd, as one would write it: loads exec_events.bpf.c's object, attached, takes the ring buffer's
// descriptor from the answer, and prints what comes out of it. The daemon does all that needs privileges and kernel
// BTF.
#include "varlink/client.h"

#include <CLI/CLI.hpp>
#include <bpf/libbpf.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

#include <fcntl.h>
#include <poll.h>

namespace {

using btfd::BorrowedFd;
using btfd::Error;
using btfd::fail;
using btfd::failErrno;
using btfd::Result;
using btfd::UniqueFd;
using nlohmann::json;

/// What the program in exec_events.bpf.c writes to the ring buffer.
struct ExecEvent {
  std::uint32_t pid;
  std::uint32_t ppid;
  std::uint32_t uid;
  std::array<char, 16> comm;
  std::array<char, 128> filename;
};

struct FreeRingBuffer {
  void operator()(ring_buffer* buffer) const { ring_buffer__free(buffer); }
};

using RingBuffer = std::unique_ptr<ring_buffer, FreeRingBuffer>;

void print(const ExecEvent& event) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, sizeof "23:59:59"> clock{};
  std::strftime(clock.data(), clock.size(), "%T", &local);
  // The kernel ends both texts with a NUL.
  std::printf("%s %8u %8u %6u  %-16s %s\n", clock.data(), event.pid, event.ppid, event.uid, event.comm.data(),
              event.filename.data());
  std::fflush(stdout);
}

/// libbpf calls this for each event. 0: go on.
int onEvent(void* count, void* data, std::size_t size) {
  ExecEvent event{};
  if (size >= sizeof event) {
    std::memcpy(&event, data, sizeof event);
    print(event);
    ++*static_cast<unsigned*>(count);
  }
  return 0;
}

/// Loads and attaches the object, and gives the ring buffer `map`. The object stays as long as `client` is connected.
Result<UniqueFd> load(btfd::varlink::Client& client, const std::string& path, const std::string& map) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return failErrno("cannot open " + path, errno);
  }
  const json request{{"objectFileDescriptor", 0}, // the index among the descriptors that go with the call
                     {"name", "exec_events"},
                     {"programs", {{"on_exec", {{"attach", json::array({json::object()})}}}}},
                     {"wantDescriptors", true}};
  const std::array<BorrowedFd, 1> descriptors{file};
  auto reply = client.call("io.btfd.Load", request, descriptors);
  if (!reply) {
    return std::unexpected(std::move(reply).error());
  }
  const std::string noMessage = reply->parameters.dump(-1, ' ', false, json::error_handler_t::replace);
  if (!reply->error.empty()) {
    return fail(reply->error + ": " + reply->parameters.value("message", noMessage));
  }
  const json& object = reply->parameters.at("object");
  for (const json& entry : object.at("maps")) {
    const auto index = entry.value("fileDescriptor", reply->descriptors.size());
    if (entry.value("name", "") == map && index < reply->descriptors.size()) {
      return std::move(reply->descriptors[index]);
    }
  }
  return fail("the daemon sent no descriptor of map " + map);
}

/// Prints events until `end`. Gives their number.
Result<unsigned> printEvents(const UniqueFd& map, BorrowedFd daemon, std::chrono::steady_clock::time_point end) {
  unsigned count = 0;
  const RingBuffer buffer(ring_buffer__new(map.get(), onEvent, &count, nullptr));
  if (!buffer) {
    return failErrno("cannot map the ring buffer", errno);
  }
  std::array<pollfd, 2> waiting{pollfd{.fd = ring_buffer__epoll_fd(buffer.get()), .events = POLLIN, .revents = 0},
                                pollfd{.fd = daemon.get(), .events = POLLIN, .revents = 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return count;
    }
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
      return failErrno("cannot wait for events", errno);
    }
    ring_buffer__consume(buffer.get());
    if (waiting[1].revents != 0) {
      return fail("the daemon closed the connection");
    }
  }
}

Result<void> run(const std::string& socket, const std::string& object, std::chrono::seconds duration) {
  auto client = btfd::varlink::Client::connect(socket);
  if (!client) {
    return std::unexpected(std::move(client).error());
  }
  const auto events = load(*client, object, "events");
  if (!events) {
    return std::unexpected(events.error());
  }
  std::printf("%-8s %8s %8s %6s  %-16s %s\n", "TIME", "PID", "PPID", "UID", "COMMAND", "FILE");
  std::fflush(stdout);
  const auto count = printEvents(*events, client->socket(), std::chrono::steady_clock::now() + duration);
  if (!count) {
    return std::unexpected(count.error());
  }
  std::printf("%u executions seen\n", *count);
  return {};
}

} // namespace

int main(int argc, char** argv) {
  std::string socket = "/run/btfd/io.btfd.Loader";
  std::string object;
  unsigned seconds = 5;
  CLI::App app("Prints what is executed on this machine, by a probe that btfd loads");
  app.add_option("--socket", socket, "The daemon's socket")->type_name("PATH");
  app.add_option("--seconds", seconds, "How long")->type_name("NUMBER")->check(CLI::Range(1U, 86400U));
  app.add_option("OBJECT", object, "exec_events.o")->required();
  CLI11_PARSE(app, argc, argv);
  if (auto done = run(socket, object, std::chrono::seconds(seconds)); !done) {
    std::fprintf(stderr, "exec-events: %s\n", done.error().message.c_str());
    return 1;
  }
  return 0;
}
