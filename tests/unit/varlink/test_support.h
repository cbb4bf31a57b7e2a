#pragma once

#include "base/unique_fd.h"
#include "varlink/client.h"
#include "varlink/frame_writer.h"
#include "varlink/message.h"
#include "varlink/server.h"
#include "varlink/service.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace btfd::varlink::test {

using nlohmann::json;

inline std::pair<UniqueFd, UniqueFd> socketPair(int flags = 0) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// An anonymous file that contains `text`: a descriptor that can be recognised at the other end.
inline UniqueFd fileWith(const std::string& text) {
  UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return file;
}

inline std::string contentOf(BorrowedFd file) {
  std::string text(4096, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  EXPECT_GE(count, 0);
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return text;
}

inline std::size_t openDescriptors() {
  std::size_t count = 0;
  for (int fd = 0; fd < 4096; ++fd) {
    count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  }
  return count;
}

/// Sends text as it is, without a NUL.
inline void sendRaw(BorrowedFd socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

inline constexpr std::string_view kTestInterface = R"(interface org.example.test
method Echo(text: string) -> (text: string)
# [Requires 'more' flag]
method Count(to: int) -> (number: int)
# [Supports 'more' flag]
method Flood(size: int) -> (sent: ?int, padding: ?string)
# [Supports 'more' flag]
method Pour(count: int, size: int) -> (number: int, padding: string)
method Prepare(size: int) -> (text: string)
method Hold() -> ()
method Drop() -> ()
method Throw() -> ()
method Record(text: string) -> ()
method Recorded() -> (texts: []string)
method ReadFile(fileDescriptor: int) -> (text: string)
method MakeFile(text: string) -> (fileDescriptor: int)
method WhoAmI() -> (pid: int, uid: int, gid: int, connection: int, processKnown: bool)
method Refuse() -> ()
method Large(size: int) -> (text: string)
error Refused (why: string)
)";

/// A server in a thread of its own, with a service that has something of everything.
class TestServer {
 public:
  explicit TestServer(ServerOptions options = {}) : service_({"Example", "test", "1.2", "https://example.org"}) {
    EXPECT_TRUE(service_.addInterface(kTestInterface));
    addHandlers();
    EXPECT_TRUE(service_.verify());
    options.checkReplies = true;
    options.log = [this, given = options.log](LogLevel level, const std::string& message) {
      if (given) {
        given(level, message);
      }
      (level == LogLevel::error ? errors_ : messages_).push_back(message);
    };
    const auto given = options.onConnectionClosed;
    options.onConnectionClosed = [this, given](const Peer& peer) {
      closed_.push_back(peer.connection);
      if (given) {
        given(peer);
      }
    };
    server_.emplace(context_, service_, std::move(options));
    thread_ = std::thread([this] { context_.run(); });
  }

  ~TestServer() {
    inLoop([this] {
      held_.clear();
      server_.reset();
    });
    guard_.reset();
    thread_.join();
  }

  /// Runs `function` in the server's thread and returns its result.
  template <typename Function>
  std::invoke_result_t<Function> inLoop(Function function) {
    std::packaged_task<std::invoke_result_t<Function>()> task(std::move(function));
    auto result = task.get_future();
    boost::asio::post(context_, std::move(task));
    return result.get();
  }

  /// Waits until `condition` holds in the server's thread.
  template <typename Condition>
  bool eventually(Condition condition) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
      if (inLoop(condition)) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  /// A connected socket whose other end is served.
  UniqueFd connect() {
    auto [ours, theirs] = socketPair();
    inLoop([this, &theirs] { EXPECT_TRUE(server_->serve(std::move(theirs))); });
    return std::move(ours);
  }

  Client client() {
    Client client(connect());
    EXPECT_TRUE(client.setTimeout(std::chrono::seconds(10)));
    return client;
  }

  std::vector<std::string> errors() {
    return inLoop([this] { return errors_; });
  }

  std::vector<std::string> messages() {
    return inLoop([this] { return messages_; });
  }

  Server& server() { return *server_; }

  Service& service() { return service_; }

  // Only within inLoop:
  std::vector<Call> held_;
  std::vector<std::string> recorded_;
  std::vector<std::uint64_t> closed_;
  std::size_t disconnects_ = 0;
  std::size_t waits_ = 0;

 private:
  void on(std::string_view method, Service::Handler handler) {
    service_.add("org.example.test", method, std::move(handler));
  }

  /// Sends notifications `number` to `count`, as many at a time as there is room for.
  void pour(const std::shared_ptr<Call>& call, std::int64_t number, std::int64_t count, const std::string& padding) {
    const auto made = [&] { return json{{"number", number}, {"padding", padding}}; };
    while (number < count && call->notify(made())) {
      ++number;
    }
    if (number == count) {
      call->reply(made());
      return;
    }
    ++waits_;
    call->whenSent([this, call, number, count, padding] { pour(call, number, count, padding); });
  }

  void addHandlers() {
    on("Echo", [](Call call) { call.reply(call.parameters()); });
    on("Count", [](Call call) {
      const auto last = call.parameters().at("to").get<std::int64_t>();
      for (std::int64_t number = 1; number < last; ++number) {
        call.notify(json{{"number", number}});
      }
      call.reply(json{{"number", last}});
    });
    on("Flood", [](Call call) {
      const std::string padding(call.parameters().at("size").get<std::size_t>(), 'x');
      std::int64_t sent = 0;
      while (call.notify(json{{"padding", padding}})) {
        ++sent;
      }
      call.reply(json{{"sent", sent}});
    });
    on("Pour", [this](Call call) {
      auto parameters = call.takeParameters();
      pour(std::make_shared<Call>(std::move(call)), 1, parameters.at("count").get<std::int64_t>(),
           std::string(parameters.at("size").get<std::size_t>(), 'x'));
    });
    on("Prepare", [](Call call) {
      auto prepared = call.prepare(json{{"text", std::string(call.parameters().at("size").get<std::size_t>(), 'x')}});
      if (!prepared) {
        return call.error("org.example.test.Refused", json{{"why", prepared.error().message}});
      }
      call.reply(std::move(*prepared));
    });
    on("Hold", [this](Call call) {
      call.onDisconnect([this] {
        ++disconnects_;
        held_.clear();
      });
      held_.push_back(std::move(call));
    });
    on("Drop", [](Call) {});
    on("Throw", [](Call call) { static_cast<void>(call.parameters().at("absent")); });
    on("Record", [this](Call call) {
      recorded_.push_back(call.parameters().at("text").get<std::string>());
      call.reply();
    });
    on("Recorded", [this](Call call) { call.reply(json{{"texts", recorded_}}); });
    on("ReadFile", [](Call call) {
      const auto file = call.takeDescriptor(call.parameters().at("fileDescriptor").get<std::int64_t>());
      if (!file) {
        return call.invalidParameter("fileDescriptor", file.error().message);
      }
      call.reply(json{{"text", contentOf(*file)}});
    });
    on("MakeFile", [](Call call) {
      std::vector<UniqueFd> files;
      files.push_back(fileWith(call.parameters().at("text").get<std::string>()));
      call.reply(json{{"fileDescriptor", 0}}, std::move(files));
    });
    on("WhoAmI", [](Call call) {
      const Peer& peer = call.peer();
      call.reply(json{{"pid", peer.pid},
                      {"uid", peer.uid},
                      {"gid", peer.gid},
                      {"connection", peer.connection},
                      {"processKnown", call.peerProcess().has_value()}});
    });
    on("Refuse", [](Call call) { call.error("org.example.test.Refused", json{{"why", "because"}}); });
    on("Large", [](Call call) {
      call.reply(json{{"text", std::string(call.parameters().at("size").get<std::size_t>(), 'x')}});
    });
  }

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{context_.get_executor()};
  Service service_;
  std::optional<Server> server_;
  std::thread thread_;
  std::vector<std::string> errors_;
  std::vector<std::string> messages_;
};

} // namespace btfd::varlink::test
