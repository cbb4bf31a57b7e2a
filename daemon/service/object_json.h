#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "btf/kernel_spec.h"
#include "loader/channel.h"
#include "registry/registry.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <vector>

namespace btfd::service {

/// Descriptors that go with an answer; the fields named ...FileDescriptor are indexes into them.
class AnswerDescriptors {
 public:
  /// `wanted`: whether to send any at all.
  explicit AnswerDescriptors(bool wanted) : wanted_(wanted) {}

  /// Puts a descriptor's index into `json["fileDescriptor"]`, if descriptors are wanted.
  void add(nlohmann::json& json, BorrowedFd descriptor);

  [[nodiscard]] const std::vector<BorrowedFd>& all() const { return descriptors_; }

 private:
  bool wanted_;
  std::vector<BorrowedFd> descriptors_;
};

/// io.btfd.Object
nlohmann::json toJson(const registry::Object& object, AnswerDescriptors& descriptors);

/// io.btfd.Link
nlohmann::json toJson(const registry::Link& link, AnswerDescriptors& descriptors);

/// Bytes that the description of one object may take in an answer: thousands of programs and maps. What they are called
/// is the client's word, and all who list objects get it.
inline constexpr std::size_t kDescriptionLimit = std::size_t{1} << 20;

/// Bytes that its description takes in an answer.
std::size_t describedBytes(const registry::Object& object);
std::size_t describedBytes(const registry::Link& link);

/// io.btfd.KernelSpec
nlohmann::json toJson(const btf::KernelSpec& spec);

/// Takes a load job's answer (see loader/load_job.h) apart: digest, pins, programs, maps, links, and the image if there
/// is one. The error is for a worker whose answer makes no sense, from which nothing is believed.
Result<registry::Object> takeObject(loader::ChannelMessage& answer);

/// Takes an attach job's answer apart.
Result<registry::Link> takeLink(loader::ChannelMessage& answer);

} // namespace btfd::service
