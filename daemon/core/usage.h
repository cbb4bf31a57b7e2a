#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace btfd::core {

/// What relocations have looked at in the types of one BTF: with no more than this, they have the same answers.
///
/// Names, sizes and what else a type has itself are not told apart, only which members of a struct or union, or which
/// enumerators, count.
class Usage {
 public:
  struct Type {
    /// Whether it is one of those that a relocation chooses from.
    bool isCandidate = false;
    /// Whether its id itself is an answer.
    bool isIdWanted = false;
    bool areAllMembersUsed = false;
    /// By their index in the type.
    std::set<std::uint32_t> members;

    [[nodiscard]] bool uses(std::uint32_t member) const { return areAllMembersUsed || members.contains(member); }
  };

  Usage() = default;

  /// That of a split BTF, whose own types begin with `firstId`. What it uses of its base is noted in `base`, which must
  /// outlive it.
  Usage(Usage& base, std::uint32_t firstId) : base_(&base), firstId_(firstId) {}

  /// Notes that the type is used; gives what is known of it.
  Type& use(std::uint32_t id) { return id < firstId_ ? base_->use(id) : types_[id]; }

  /// The type, or null if it is not used. Of a split BTF, one of its own.
  [[nodiscard]] const Type* find(std::uint32_t id) const {
    const auto found = types_.find(id);
    return found == types_.end() ? nullptr : &found->second;
  }

  /// By id. Of a split BTF, its own.
  [[nodiscard]] const std::map<std::uint32_t, Type>& types() const { return types_; }

 private:
  Usage* base_ = nullptr;
  std::uint32_t firstId_ = 0;
  std::map<std::uint32_t, Type> types_;
};

} // namespace btfd::core
