#pragma once

#include <bpf/btf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace btfd::object {

/// What writing and reading values of C types by an object's BTF have in common. The BTF may be hostile.
class ValueTypes {
 public:
  /// Deeper than C programs nest, and a bound for types that contain themselves, which only a broken BTF has.
  static constexpr int kMaximumDepth = 64;

  /// `btf` must outlive it.
  explicit ValueTypes(const struct ::btf& btf) : btf_(btf) {}

  [[nodiscard]] const struct ::btf& btf() const { return btf_; }

  /// The type behind modifiers and typedefs, or null.
  [[nodiscard]] const struct btf_type* resolve(std::uint32_t typeId) const;

  [[nodiscard]] std::string nameOf(std::uint32_t offset) const;

  /// A type in words.
  [[nodiscard]] std::string describe(const struct btf_type* type) const { return describe(type, 0); }

  /// The value of an enum's enumerator called `name`, and whether it is negative.
  [[nodiscard]] std::optional<std::pair<std::uint64_t, bool>> enumerator(const struct btf_type* type,
                                                                         const std::string& name) const;

  /// The first enumerator of an enum that has the value `bits`, sign-extended to 64 bits where its type is; or nothing.
  [[nodiscard]] std::optional<std::string> enumeratorOf(const struct btf_type* type, std::uint64_t bits) const;

  /// Names of the first of an enum's enumerators.
  [[nodiscard]] std::vector<std::string> enumeratorNames(const struct btf_type* type) const;

  /// Whether the type is an enum of 32 or of 64 bits.
  static bool isEnum(const struct btf_type* type) {
    return btf_kind(type) == BTF_KIND_ENUM || btf_kind(type) == BTF_KIND_ENUM64;
  }

 private:
  [[nodiscard]] std::string describe(const struct btf_type* type, int depth) const;

  const struct ::btf& btf_;
};

/// Names that a mistaken one is compared with: more than people write into one type.
inline constexpr std::size_t kMaximumKnown = 1024;

} // namespace btfd::object
