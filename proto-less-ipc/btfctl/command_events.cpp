#include "btfctl/command.h"
#include "btfctl/daemon.h"
#include "btfctl/fields.h"
#include "btfctl/record_type.h"
#include "btfctl/signal_queue.h"

#include <CLI/CLI.hpp>
#include <bpf/libbpf.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <poll.h>

namespace btfd::btfctl {
namespace {

using nlohmann::json;

struct RingBufferDeleter {
  void operator()(struct ring_buffer* buffer) const { ring_buffer__free(buffer); }
};

using OnRecord = std::function<bool(std::span<const std::byte>)>;

/// libbpf's callback; a negative result ends the reading.
int passRecord(void* onRecord, void* data, std::size_t size) {
  const bool goOn = (*static_cast<OnRecord*>(onRecord))(std::span(static_cast<const std::byte*>(data), size));
  return goOn ? 0 : -ECANCELED;
}

class EventsCommand : public Command {
 public:
  explicit EventsCommand(CLI::App& parent)
      : Command(parent, "events", "Print the records of a ring buffer as they come, until Ctrl-C",
                "  btfctl events tcpconnect events\n"
                "      a line of JSON for each record, as the object's BTF describes it\n"
                "  btfctl events 7 events --type 'struct event' --count 10 | jq -r .comm\n") {
    argument("OBJECT", object_, "Id or name of the object");
    argument("MAP", map_, "Name of the ring buffer");
    option("--type", "TYPE", type_,
           "The records' type; else the one that the map declares (value), or the object's only struct of their size");
    app().add_option("--count", count_, "End after so many records")->type_name("N")->check(CLI::PositiveNumber);
  }

  [[nodiscard]] std::string subject() const override { return "events " + object_ + " " + map_; }

  Outcome<int> run(const Context& context) override {
    auto signals = SignalQueue::open();
    if (!signals) {
      return failed(ExitStatus::Failed, signals.error().message);
    }
    auto daemon = Daemon::connect(context.socket);
    if (!daemon) {
      return std::unexpected(std::move(daemon).error());
    }
    auto id = findObject(*daemon, object_);
    if (!id) {
      return std::unexpected(std::move(id).error());
    }
    auto map = daemon->callForDescriptor("GetDescriptors", {{"objectId", *id}, {"maps", {map_}}});
    if (!map) {
      return std::unexpected(std::move(map).error());
    }
    auto btf = daemon->callForDescriptor("GetBtf", {{"objectId", *id}});
    if (!btf) {
      return std::unexpected(std::move(btf).error());
    }
    auto type = RecordType::find(*btf, map_, type_);
    if (!type) {
      return failed(ExitStatus::NotFound, type.error().message);
    }
    OnRecord onRecord = [&](std::span<const std::byte> record) {
      const json value = type->read(record);
      context.print(value, dumped(value) + "\n");
      return static_cast<bool>(context.out) && (!count_ || --*count_ > 0);
    };
    const std::unique_ptr<struct ring_buffer, RingBufferDeleter> buffer(
        ring_buffer__new(map->get(), passRecord, &onRecord, nullptr));
    if (!buffer) {
      return failed(ExitStatus::Failed, errno == EINVAL ? "map '" + map_ + "' is no ring buffer"
                                                        : "map '" + map_ + "' cannot be read as a ring buffer: " +
                                                              std::generic_category().message(errno));
    }
    return read(*buffer, *signals, *daemon);
  }

 private:
  /// Until a signal comes, the records asked for have come, or the daemon is gone.
  static Outcome<int> read(struct ring_buffer& buffer, const SignalQueue& signals, const Daemon& daemon) {
    while (true) {
      const int read = ring_buffer__consume(&buffer);
      if (read == -ECANCELED) {
        return 0;
      }
      if (read < 0) {
        return failed(ExitStatus::Failed, "the ring buffer cannot be read: " + std::generic_category().message(-read));
      }
      std::array<pollfd, 3> files{{{.fd = ring_buffer__epoll_fd(&buffer), .events = POLLIN, .revents = 0},
                                   {.fd = signals.fd().get(), .events = POLLIN, .revents = 0},
                                   {.fd = daemon.socket().get(), .events = POLLIN, .revents = 0}}};
      if (::poll(files.data(), files.size(), -1) < 0 && errno != EINTR) {
        return failed(ExitStatus::Failed, "cannot wait for records: " + std::generic_category().message(errno));
      }
      if (files[1].revents != 0) {
        return 0;
      }
      if (files[2].revents != 0) {
        return failed(ExitStatus::Unreachable, "the daemon has ended the connection");
      }
    }
  }

  std::string object_;
  std::string map_;
  std::string type_;
  std::optional<std::uint64_t> count_;
};

} // namespace

std::unique_ptr<Command> eventsCommand(CLI::App& parent) {
  return std::make_unique<EventsCommand>(parent);
}

} // namespace btfd::btfctl
