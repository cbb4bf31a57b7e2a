#pragma once

#include "object/checked_image.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <linux/bpf.h>

namespace btfd::check {

/// An instruction of an object: its section's number in the section table, and its own in that section.
struct Place {
  std::size_t section = 0;
  std::size_t instruction = 0;

  auto operator<=>(const Place&) const = default;
};

/// What an instruction of a bpf_call or of a 64-bit constant refers to.
struct Referred {
  /// The symbol, or null for a call within the section.
  const object::Symbol* symbol = nullptr;
  /// For code, the instruction; for data, section and byte offset in it. Nothing for what the kernel is to supply.
  std::optional<Place> code;
  std::uint64_t dataOffset = 0;
};

/// A function of an object.
struct CodeFunction {
  std::string_view name;
  Place begin;
  /// The instruction behind its last.
  std::size_t end = 0;
  /// Whether the verifier takes it by its prototype alone, whoever calls it: global functions.
  bool isGlobal = false;
};

/// The code of an object: its sections, functions, and what instructions refer to. Refers to the image.
class Code {
 public:
  Code() = default;
  Code(Code&&) = default;
  Code& operator=(Code&&) = default;
  Code(const Code&) = delete; // it points into itself
  Code& operator=(const Code&) = delete;
  ~Code() = default;

  /// An error if the file's symbol table is broken.
  static Result<Code> read(const object::CheckedImage& image);

  /// The sections that hold code, ascending by number.
  struct Section {
    std::size_t number = 0;
    std::string_view name;
    /// Where its content begins in the file, and how many instructions it has.
    std::size_t fileOffset = 0;
    std::size_t instructions = 0;
    std::vector<object::Reference> references;
  };

  [[nodiscard]] std::span<const Section> sections() const { return sections_; }

  [[nodiscard]] const Section* find(std::size_t number) const;

  /// Whether the object is in the other byte order than this machine's.
  [[nodiscard]] bool isForeign() const { return isForeign_; }

  /// The instruction at `place`, which must be one of a section's, in this machine's byte order. `image`: the file,
  /// with relocations applied or not.
  [[nodiscard]] bpf_insn instructionAt(const Place& place, std::span<const std::byte> image) const;

  [[nodiscard]] std::span<const CodeFunction> functions() const { return functions_; }

  /// The function that `place` lies in, or null.
  [[nodiscard]] const CodeFunction* functionAt(const Place& place) const;

  [[nodiscard]] std::span<const object::Symbol> symbols() const { return symbols_; }

  /// The symbol called `name` that the object leaves to the kernel, or null.
  [[nodiscard]] const object::Symbol* findUndefined(std::string_view name) const;

  /// What `instruction`, which is at `place`, refers to, if anything.
  [[nodiscard]] std::optional<Referred> referredBy(const Place& place, const bpf_insn& instruction) const;

  /// The content of section `number` if it is constant data (.rodata); else empty.
  [[nodiscard]] std::span<const std::byte> constants(std::size_t number) const;

 private:
  [[nodiscard]] const object::Reference* referenceAt(const Place& place) const;

  void readSymbols();

  bool isForeign_ = false;
  std::vector<Section> sections_;
  std::vector<object::Symbol> symbols_;
  /// By name, those that the object leaves to the kernel; they point into symbols_.
  std::map<std::string_view, const object::Symbol*> undefined_;
  std::vector<CodeFunction> functions_;
  std::vector<std::pair<std::size_t, std::span<const std::byte>>> constants_;
};

} // namespace btfd::check
