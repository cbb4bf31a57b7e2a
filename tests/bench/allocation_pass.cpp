#include "allocation_pass.h"

#include "allocation_table.h"
#include "daemon_session.h"
#include "private_daemon.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace btfd::bench {

namespace {

/// Loads before counting starts: what workers set up once is no part of a load.
constexpr int kWarmUpLoads = 10;
constexpr int kCountedLoads = 10;

/// The file that the counters write to, mapped.
class Table {
 public:
  static Result<Table> create() {
    std::string path = (std::filesystem::temp_directory_path() / "btfd-bench-allocations.XXXXXX").string();
    const UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));
    if (!file || ::ftruncate(file.get(), sizeof(AllocationTable)) != 0) {
      return failErrno("cannot create " + path, errno);
    }
    void* memory = ::mmap(nullptr, sizeof(AllocationTable), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) {
      return failErrno("mmap of " + path, errno);
    }
    return Table(std::move(path), static_cast<AllocationTable*>(memory));
  }

  Table(Table&& other) noexcept : path_(std::exchange(other.path_, {})), table_(std::exchange(other.table_, nullptr)) {}

  Table& operator=(Table&&) = delete;

  ~Table() {
    if (table_ != nullptr) {
      ::munmap(table_, sizeof(AllocationTable));
      ::unlink(path_.c_str());
    }
  }

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Sum over all processes but `front`.
  [[nodiscard]] Allocations ofWorkers(pid_t front) const {
    Allocations sum;
    for (std::uint32_t i = 0; i < std::min(table_->used.load(), kAllocationSlots); ++i) {
      const AllocationSlot& slot = table_->slots[i];
      if (slot.process != front) {
        sum.count += static_cast<double>(slot.allocations);
        sum.bytes += static_cast<double>(slot.bytes);
      }
    }
    return sum;
  }

 private:
  Table(std::string path, AllocationTable* table) : path_(std::move(path)), table_(table) {}

  std::string path_;
  AllocationTable* table_;
};

Result<void> load(DaemonSession& session, ObjectFile& object, int times, std::uint64_t& number) {
  for (int i = 0; i < times; ++i) {
    object.makeDistinct(++number);
    const auto file = object.memfd();
    if (!file) {
      return std::unexpected(file.error());
    }
    if (const auto loaded = session.loadAndUnload(*file); !loaded) {
      return std::unexpected(loaded.error());
    }
  }
  return {};
}

} // namespace

Result<std::map<std::string, Allocations>> countAllocations(const std::filesystem::path& daemon,
                                                            const std::filesystem::path& counter,
                                                            std::map<std::string, ObjectFile> objects) {
  auto table = Table::create();
  if (!table) {
    return std::unexpected(table.error());
  }
  auto running = PrivateDaemon::start(daemon, {{"LD_PRELOAD", counter}, {kAllocationTableVariable, table->path()}});
  if (!running) {
    return std::unexpected(std::move(running.error()).within("for counting allocations"));
  }
  auto session = DaemonSession::connect(running->socketPath());
  if (!session) {
    return std::unexpected(session.error());
  }
  std::map<std::string, Allocations> result;
  std::uint64_t number = 0;
  for (auto& [name, object] : objects) {
    if (auto done = load(*session, object, kWarmUpLoads, number); !done) {
      return std::unexpected(std::move(done.error()));
    }
    const Allocations before = table->ofWorkers(running->process());
    if (auto done = load(*session, object, kCountedLoads, number); !done) {
      return std::unexpected(std::move(done.error()));
    }
    const Allocations after = table->ofWorkers(running->process());
    if (after.count == 0) {
      return fail("counted no allocation in any worker: the daemon did not keep " + counter.string() + " preloaded");
    }
    result[name] = {.count = (after.count - before.count) / kCountedLoads,
                    .bytes = (after.bytes - before.bytes) / kCountedLoads};
  }
  return result;
}

} // namespace btfd::bench
