#include "bpf_recording.h"

#include "base/unique_fd.h"

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

// The linker's --wrap=syscall gives the C library's function this name, and the name syscall to __wrap_syscall below.
extern "C" long __real_syscall(long number, ...);

namespace btfd::bench {

namespace {

/// The kernel takes pointers as 64-bit integers.
const std::byte* pointerOf(std::uint64_t address) {
  return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(address));
}

struct MapSizes {
  std::uint32_t key;
  std::uint32_t value;
  bool holdsDescriptors;
};

} // namespace

/// Turns the calls of one thread into a Recording.
class Recorder {
 public:
  void madeCall(bpf_cmd command, const bpf_attr* attributes, unsigned int size, long result) {
    if (result < 0 || isProbe(command, *attributes)) {
      return;
    }
    RecordedCall call{
        .command = command, .size = size, .attributes = {}, .buffers = {}, .uses = {}, .makesDescriptor = false};
    std::memcpy(&call.attributes, attributes, std::min<std::size_t>(size, sizeof(call.attributes)));
    switch (command) {
    case BPF_MAP_CREATE:
      recordMapCreate(call, static_cast<int>(result));
      break;
    case BPF_BTF_LOAD:
      addBuffer(call, offsetof(bpf_attr, btf), attributes->btf, attributes->btf_size);
      clear(call, offsetof(bpf_attr, btf_log_buf));
      call.makesDescriptor = true;
      break;
    case BPF_PROG_LOAD:
      recordProgLoad(call);
      break;
    case BPF_MAP_UPDATE_ELEM:
      recordMapUpdate(call);
      break;
    case BPF_MAP_FREEZE:
      addUse(call, offsetof(bpf_attr, map_fd), attributes->map_fd);
      break;
    case BPF_PROG_BIND_MAP:
      addUse(call, offsetof(bpf_attr, prog_bind_map.prog_fd), attributes->prog_bind_map.prog_fd);
      addUse(call, offsetof(bpf_attr, prog_bind_map.map_fd), attributes->prog_bind_map.map_fd);
      break;
    default: // Questions to the kernel, such as BPF_OBJ_GET_INFO_BY_FD, are libbpf's own, not part of the load.
      return;
    }
    if (call.makesDescriptor) {
      makers_[static_cast<int>(result)] = recording_.calls_.size();
    }
    recording_.calls_.push_back(std::move(call));
  }

  /// libbpf moves a new map's descriptor to one that it has reserved.
  void madeDuplicate(int from, int to) {
    if (const auto maker = makers_.find(from); maker != makers_.end()) {
      makers_[to] = maker->second;
    }
    if (const auto sizes = maps_.find(from); sizes != maps_.end()) {
      maps_[to] = sizes->second;
    }
  }

  Result<Recording> finish() && {
    if (!problem_.empty()) {
      return fail("cannot replay this load: " + problem_);
    }
    if (recording_.calls_.empty()) {
      return fail("the load made no bpf(2) call");
    }
    return std::move(recording_);
  }

 private:
  /// libbpf tries before each load whether it may load at all, with a program that has no name; ours have names.
  static bool isProbe(bpf_cmd command, const bpf_attr& attributes) {
    return command == BPF_PROG_LOAD && attributes.prog_name[0] == '\0';
  }

  static void clear(RecordedCall& call, std::size_t offset) {
    std::memset(reinterpret_cast<std::byte*>(&call.attributes) + offset, 0, sizeof(std::uint64_t));
  }

  static void addBuffer(RecordedCall& call, std::size_t attributeOffset, std::uint64_t address, std::size_t size) {
    if (address != 0 && size != 0) {
      call.buffers.push_back({attributeOffset, {pointerOf(address), pointerOf(address) + size}});
    }
  }

  void addUse(RecordedCall& call, std::size_t offset, std::uint32_t descriptor,
              std::optional<std::size_t> buffer = {}) {
    const auto maker = makers_.find(static_cast<int>(descriptor));
    if (maker == makers_.end()) {
      problem_ = "bpf command " + std::to_string(call.command) + " uses a descriptor that no recorded call has made";
      return;
    }
    call.uses.push_back({buffer, offset, maker->second});
  }

  void addUseUnlessZero(RecordedCall& call, std::size_t offset, std::uint32_t descriptor) {
    if (descriptor != 0) {
      addUse(call, offset, descriptor);
    }
  }

  void recordMapCreate(RecordedCall& call, int result) {
    const bpf_attr& attributes = call.attributes;
    addUseUnlessZero(call, offsetof(bpf_attr, inner_map_fd), attributes.inner_map_fd);
    addUseUnlessZero(call, offsetof(bpf_attr, btf_fd), attributes.btf_fd);
    call.makesDescriptor = true;
    maps_[result] = {attributes.key_size, attributes.value_size,
                     attributes.map_type == BPF_MAP_TYPE_ARRAY_OF_MAPS ||
                         attributes.map_type == BPF_MAP_TYPE_HASH_OF_MAPS ||
                         attributes.map_type == BPF_MAP_TYPE_PROG_ARRAY};
  }

  void recordMapUpdate(RecordedCall& call) {
    const bpf_attr& attributes = call.attributes;
    const auto sizes = maps_.find(static_cast<int>(attributes.map_fd));
    if (sizes == maps_.end()) {
      problem_ = "it writes to a map that it has not created";
      return;
    }
    addUse(call, offsetof(bpf_attr, map_fd), attributes.map_fd);
    addBuffer(call, offsetof(bpf_attr, key), attributes.key, sizes->second.key);
    addBuffer(call, offsetof(bpf_attr, value), attributes.value, sizes->second.value);
    if (sizes->second.holdsDescriptors) {
      std::uint32_t descriptor = 0;
      std::memcpy(&descriptor, pointerOf(attributes.value), sizeof(descriptor));
      addUse(call, 0, descriptor, call.buffers.size() - 1);
    }
  }

  void recordProgLoad(RecordedCall& call) {
    const bpf_attr& attributes = call.attributes;
    if (attributes.fd_array != 0 || attributes.core_relo_cnt != 0) {
      problem_ = "a program brings an array of descriptors or relocations for the kernel";
      return;
    }
    addBuffer(call, offsetof(bpf_attr, insns), attributes.insns, attributes.insn_cnt * sizeof(bpf_insn));
    addInstructionUses(call, call.buffers.size() - 1);
    addBuffer(call, offsetof(bpf_attr, license), attributes.license,
              std::strlen(reinterpret_cast<const char*>(pointerOf(attributes.license))) + 1);
    addBuffer(call, offsetof(bpf_attr, func_info), attributes.func_info,
              std::size_t{attributes.func_info_cnt} * attributes.func_info_rec_size);
    addBuffer(call, offsetof(bpf_attr, line_info), attributes.line_info,
              std::size_t{attributes.line_info_cnt} * attributes.line_info_rec_size);
    addUseUnlessZero(call, offsetof(bpf_attr, prog_btf_fd), attributes.prog_btf_fd);
    addUseUnlessZero(call, offsetof(bpf_attr, attach_btf_obj_fd), attributes.attach_btf_obj_fd);
    call.attributes.log_level = 0;
    call.attributes.log_size = 0;
    clear(call, offsetof(bpf_attr, log_buf));
    call.makesDescriptor = true;
  }

  void addInstructionUses(RecordedCall& call, std::size_t buffer) {
    const std::vector<std::byte>& bytes = call.buffers[buffer].bytes;
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(bpf_insn)) {
      bpf_insn instruction{};
      std::memcpy(&instruction, bytes.data() + at, sizeof(instruction));
      if (instruction.code != (BPF_LD | BPF_IMM | BPF_DW)) {
        continue;
      }
      if (instruction.src_reg == BPF_PSEUDO_MAP_FD || instruction.src_reg == BPF_PSEUDO_MAP_VALUE) {
        addUse(call, at + offsetof(bpf_insn, imm), static_cast<std::uint32_t>(instruction.imm), buffer);
      }
      at += sizeof(bpf_insn); // the second half
    }
  }

  Recording recording_;
  /// Descriptor to the call that made it. Numbers are used again: the latest counts.
  std::map<int, std::size_t> makers_;
  std::map<int, MapSizes> maps_;
  std::string problem_;
};

namespace {

/// Whom __wrap_syscall tells. Global, as syscall(3) has no place for an argument of ours.
thread_local Recorder* activeRecorder = nullptr;

/// Ends the recording with its scope.
class ActiveRecorder {
 public:
  explicit ActiveRecorder(Recorder& recorder) { activeRecorder = &recorder; }

  ActiveRecorder(const ActiveRecorder&) = delete;
  ActiveRecorder& operator=(const ActiveRecorder&) = delete;

  ~ActiveRecorder() { activeRecorder = nullptr; }
};

} // namespace

Result<Recording> Recording::of(const std::function<Result<void>()>& load) {
  Recorder recorder;
  Result<void> loaded = [&] {
    const ActiveRecorder active(recorder);
    return load();
  }();
  if (!loaded) {
    return std::unexpected(std::move(loaded.error()));
  }
  return std::move(recorder).finish();
}

Result<void> Recording::replay() {
  std::vector<UniqueFd> made(calls_.size());
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    RecordedCall& call = calls_[i];
    auto* attributes = reinterpret_cast<std::byte*>(&call.attributes);
    for (const DescriptorUse& use : call.uses) {
      std::byte* place = use.buffer ? call.buffers[*use.buffer].bytes.data() : attributes;
      const int descriptor = made[use.maker].get();
      std::memcpy(place + use.offset, &descriptor, sizeof(descriptor));
    }
    for (const RecordedBuffer& buffer : call.buffers) {
      const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(buffer.bytes.data()));
      std::memcpy(attributes + buffer.attributeOffset, &address, sizeof(address));
    }
    const long result = __real_syscall(SYS_bpf, call.command, &call.attributes, call.size);
    if (result < 0) {
      return failErrno("replay of bpf command " + std::to_string(call.command), errno);
    }
    if (call.makesDescriptor) {
      made[i].reset(static_cast<int>(result));
    }
  }
  return {};
}

} // namespace btfd::bench

/// Stands in for the C library's syscall(3) in this program (--wrap=syscall), and shows bpf(2) calls to the recorder.
extern "C" long __wrap_syscall(long number, ...) {
  // At most six arguments, all of register size; those that were not given are not looked at by the kernel.
  std::array<long, 6> arguments{};
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) {
    argument = va_arg(list, long);
  }
  va_end(list);
  const long result =
      __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  btfd::bench::Recorder* const recorder = btfd::bench::activeRecorder;
  if (recorder != nullptr && number == SYS_bpf) {
    const int savedErrno = errno;
    recorder->madeCall(static_cast<bpf_cmd>(arguments[0]), reinterpret_cast<const bpf_attr*>(arguments[1]),
                       static_cast<unsigned int>(arguments[2]), result);
    errno = savedErrno;
  } else if (recorder != nullptr && number == SYS_dup3 && result >= 0) {
    recorder->madeDuplicate(static_cast<int>(arguments[0]), static_cast<int>(arguments[1]));
  }
  return result;
}
