#include "job.h"

#include <cstring>
#include <new>

#include <sys/mman.h>

namespace btfd::loader {

namespace {

/// What bpftool takes, too; enough for the whole log of nearly all programs. Of a longer one the kernel keeps the end
/// (since Linux 6.4), which has the reason.
constexpr std::size_t kVerifierLogBytes = std::size_t{16} << 20;

} // namespace

VerifierLogBuffer::VerifierLogBuffer() {
  void* memory =
      ::mmap(nullptr, kVerifierLogBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  data_ = static_cast<char*>(memory);
}

VerifierLogBuffer::~VerifierLogBuffer() {
  ::munmap(data_, kVerifierLogBytes);
}

std::size_t VerifierLogBuffer::size() {
  return kVerifierLogBytes;
}

std::string_view VerifierLogBuffer::text() const {
  return {data_, ::strnlen(data_, kVerifierLogBytes)};
}

void VerifierLogBuffer::clear() {
  if (data_[0] != '\0') {
    ::madvise(data_, kVerifierLogBytes, MADV_DONTNEED);
  }
}

std::vector<struct bpf_program*> autoloadedPrograms(struct bpf_object& object) {
  std::vector<struct bpf_program*> programs;
  struct bpf_program* program = nullptr;
  bpf_object__for_each_program(program, &object) {
    if (bpf_program__autoload(program)) {
      programs.push_back(program);
    }
  }
  return programs;
}

std::string mapName(const struct bpf_map& map) {
  const std::string_view name = bpf_map__name(&map);
  const auto dot = name.find('.');
  return std::string(bpf_map__is_internal(&map) && dot != std::string_view::npos ? name.substr(dot) : name);
}

Outcome<struct bpf_program*> findProgram(struct bpf_object& object, std::string_view name) {
  std::vector<std::string> known;
  struct bpf_program* program = nullptr;
  bpf_object__for_each_program(program, &object) {
    if (name == bpf_program__name(program)) {
      return program;
    }
    known.emplace_back(bpf_program__name(program));
  }
  return noSuchName("program", name, known);
}

MapsByName::MapsByName(struct bpf_object& object) {
  struct bpf_map* map = nullptr;
  bpf_object__for_each_map(map, &object) {
    maps_.emplace_back(mapName(*map), map);
  }
}

Outcome<struct bpf_map*> MapsByName::find(std::string_view name) const {
  std::vector<std::string> known;
  for (const auto& [mapName, map] : maps_) {
    if (mapName == name) {
      return map;
    }
    known.push_back(mapName);
  }
  return noSuchName("map", name, known);
}

} // namespace btfd::loader
