#pragma once

#include "code.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace btfd::check {

/// Whether the verifier comes across an instruction.
enum class Reach : std::uint8_t {
  /// It does not: no program that is loaded leads there, given the values that CO-RE and the object's constants have.
  never,
  /// That depends on what only the kernel that loads it knows, such as its version.
  depends,
  /// It does.
  always,
};

/// What is known of the address of a symbol that the kernel is to supply.
enum class Supplied : std::uint8_t { no, yes, unknown };

/// Finds out which instructions of an object the verifier will look at.
///
/// The verifier does not look at code behind a condition that it knows to be false; on this rests the idiom "if
/// (bpf_core_field_exists(...))". So this follows constants through registers, spills, calls and read-only data, as far
/// as compilers use them in such conditions. Where it knows less than the verifier, it errs towards `always`.
class Reachability {
 public:
  /// `image`: the file with its relocations applied. `entries`: where the programs to be loaded begin. `supplied` tells
  /// of a symbol whether the kernel has it.
  Reachability(const Code& code, std::span<const std::byte> image, std::span<const Place> entries,
               const std::function<Supplied(std::string_view)>& supplied);

  [[nodiscard]] Reach at(const Place& place) const;

 private:
  const Code& code_;
  /// For each of the code's sections, one for each instruction.
  std::vector<std::vector<Reach>> reached_;
};

} // namespace btfd::check
