#include "run_statistics.h"

#include <bpf/bpf.h>

#include <cerrno>

namespace btfd::service {

Result<void> RunStatistics::countFor(std::uint64_t connection) {
  if (!counting_) {
    counting_ = UniqueFd(bpf_enable_stats(BPF_STATS_RUN_TIME));
    if (!counting_) {
      return failErrno("cannot have the kernel count the runs of programs", errno);
    }
  }
  connections_.insert(connection);
  return {};
}

void RunStatistics::connectionClosed(std::uint64_t connection) {
  if (connections_.erase(connection) > 0 && connections_.empty()) {
    counting_.reset();
  }
}

nlohmann::json RunStatistics::of(const registry::Program& program) {
  struct bpf_prog_info info{};
  __u32 length = sizeof(info);
  if (bpf_prog_get_info_by_fd(program.descriptor.get(), &info, &length) < 0) {
    info = {};
  }
  nlohmann::json json;
  json["runs"] = info.run_cnt;
  json["runTimeNSec"] = info.run_time_ns;
  json["recursionMisses"] = info.recursion_misses;
  json["verifiedInstructions"] = info.verified_insns;
  json["jitedBytes"] = info.jited_prog_len;
  return json;
}

} // namespace btfd::service
