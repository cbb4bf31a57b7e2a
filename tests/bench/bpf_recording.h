#pragma once

#include "base/error.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <linux/bpf.h>

namespace btfd::bench {

/// Bytes that a call's attributes point to.
struct RecordedBuffer {
  /// Where in bpf_attr the pointer stands.
  std::size_t attributeOffset;
  std::vector<std::byte> bytes;
};

/// A place where a call names a descriptor that an earlier call made.
struct DescriptorUse {
  /// Index of the buffer that holds it; none: the attributes themselves.
  std::optional<std::size_t> buffer;
  /// Offset of the 32-bit descriptor there, in bytes.
  std::size_t offset;
  /// Index of the call that made it.
  std::size_t maker;
};

/// One bpf(2) call with deep copies of all that the kernel reads.
struct RecordedCall {
  bpf_cmd command;
  unsigned int size;
  bpf_attr attributes;
  std::vector<RecordedBuffer> buffers;
  std::vector<DescriptorUse> uses;
  bool makesDescriptor;
};

/// The bpf(2) calls of one load, without the feature probes, ready to be made again: what a load costs the kernel
/// alone.
class Recording {
 public:
  /// Records the calls that succeed while `load` runs in this thread. `load` must have run before in this process, as
  /// libbpf then has its feature probes behind it. An error if it fails or makes a call that cannot be made again.
  static Result<Recording> of(const std::function<Result<void>()>& load);

  /// Makes all calls again, with the descriptors that the new calls return in place of the recorded ones, and closes
  /// what they made.
  Result<void> replay();

  [[nodiscard]] std::size_t calls() const { return calls_.size(); }

 private:
  friend class Recorder;
  std::vector<RecordedCall> calls_;
};

} // namespace btfd::bench
