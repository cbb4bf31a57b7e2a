#include "process_memory.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace btfd::bench {

namespace {

constexpr std::uint64_t kKibibyte = 1024;

struct Memory {
  std::uint64_t rss = 0;
  std::uint64_t pss = 0;
};

std::optional<Memory> memoryOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/smaps_rollup");
  Memory memory;
  bool found = false;
  for (std::string word; file >> word;) {
    if (word == "Rss:") {
      found = static_cast<bool>(file >> memory.rss);
    } else if (word == "Pss:") {
      file >> memory.pss;
    }
  }
  if (!found) {
    return std::nullopt;
  }
  return Memory{memory.rss * kKibibyte, memory.pss * kKibibyte};
}

/// The children of all of its threads (proc(5): task/TID/children).
std::vector<pid_t> childrenOf(pid_t process) {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", error)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child = 0; file >> child;) {
      children.push_back(child);
    }
  }
  return children;
}

} // namespace

std::optional<TreeMemory> treeMemory(pid_t root) {
  TreeMemory total;
  std::vector<pid_t> processes{root};
  while (!processes.empty()) {
    const pid_t process = processes.back();
    processes.pop_back();
    const auto memory = memoryOf(process);
    if (!memory) {
      if (process == root) {
        return std::nullopt;
      }
      continue; // it ended meanwhile
    }
    total.processes++;
    total.rssBytes += memory->rss;
    total.pssBytes += memory->pss;
    if (process == root) {
      total.rootRssBytes = memory->rss;
    }
    for (const pid_t child : childrenOf(process)) {
      processes.push_back(child);
    }
  }
  return total;
}

} // namespace btfd::bench
