#pragma once

#include "base/unique_fd.h"
#include "failure.h"
#include "object/opened_object.h"

#include <bpf/libbpf.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace btfd::loader {

using object::ObjectHandle;

/// What bounds a job; from the configuration.
struct JobLimits {
  /// The largest object file, in bytes.
  std::uint64_t objectBytes = 0;
  /// How much of a verifier log goes into an answer, in bytes.
  std::size_t verifierLogBytes = 0;
  /// What the description of a loaded object may take in an answer, in bytes.
  std::size_t descriptionBytes = std::size_t{1} << 20;
};

/// Memory for the verifier's log, reused from job to job. Only what the kernel writes into it takes memory.
class VerifierLogBuffer {
 public:
  VerifierLogBuffer();
  ~VerifierLogBuffer();
  VerifierLogBuffer(const VerifierLogBuffer&) = delete;
  VerifierLogBuffer& operator=(const VerifierLogBuffer&) = delete;
  VerifierLogBuffer(VerifierLogBuffer&&) = delete;
  VerifierLogBuffer& operator=(VerifierLogBuffer&&) = delete;

  [[nodiscard]] char* data() const { return data_; }

  [[nodiscard]] static std::size_t size();

  /// What the kernel wrote since `clear`.
  [[nodiscard]] std::string_view text() const;

  /// Empties it and gives its memory back.
  void clear();

 private:
  char* data_;
};

/// A job's answer: a body that refers to `descriptors` by index.
struct JobReply {
  nlohmann::json body;
  std::vector<BorrowedFd> descriptors;

  // What keeps the descriptors open until the answer is sent.
  std::vector<UniqueFd> owned;
  ObjectHandle object;

  /// Puts a descriptor into the answer and returns its index.
  std::size_t add(BorrowedFd descriptor) {
    descriptors.push_back(descriptor);
    return descriptors.size() - 1;
  }

  std::size_t add(UniqueFd descriptor) {
    descriptors.emplace_back(descriptor);
    owned.push_back(std::move(descriptor));
    return descriptors.size() - 1;
  }
};

/// The object's programs that were not left out, in its order.
std::vector<struct bpf_program*> autoloadedPrograms(struct bpf_object& object);

/// A map's name as the object has it: libbpf puts the object's name in front of ".bss" and the like.
std::string mapName(const struct bpf_map& map);

/// The program called `name`, or io.btfd.NoSuchName.
Outcome<struct bpf_program*> findProgram(struct bpf_object& object, std::string_view name);

/// An object's maps by name. To be made before a map is replaced by another, since libbpf then takes that one's name.
class MapsByName {
 public:
  MapsByName() = default;
  explicit MapsByName(struct bpf_object& object);

  /// The map called `name`, or io.btfd.NoSuchName.
  [[nodiscard]] Outcome<struct bpf_map*> find(std::string_view name) const;

  /// Names and maps in the object's order.
  [[nodiscard]] const std::vector<std::pair<std::string, struct bpf_map*>>& all() const { return maps_; }

 private:
  std::vector<std::pair<std::string, struct bpf_map*>> maps_;
};

} // namespace btfd::loader
