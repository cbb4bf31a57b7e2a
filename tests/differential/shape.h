#pragma once

#include "test_support/btf_maker.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace btfd::differential {

using test_support::BtfMaker;
using test_support::TypeId;

/// Numbers that follow from a seed alone, on every machine (std::uniform_int_distribution is free to differ).
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Less than `end`.
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(engine_() % end); }

  /// True one time in `n`.
  bool oneIn(std::uint32_t n) { return below(n) == 0; }

  template <typename T>
  const T& of(const std::vector<T>& choices) {
    return choices[below(static_cast<std::uint32_t>(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

/// A type as a tree, which both the object's types and, after changes, the kernel's are made of.
struct Shape {
  enum class Kind : std::uint8_t {
    integer,
    floating,
    pointer,
    array,
    structure,
    unionOf,
    enumeration,
    enumeration64,
    definedAs,
    constant,
    isVolatile,
    restricted,
    tagged,
    forward,
    prototype,
    nothing,
  };

  struct Member {
    std::string name;
    Shape* type = nullptr;
    std::uint32_t bits = 0;
  };

  Kind kind = Kind::nothing;
  std::string name = {};
  /// Of integers, floats and enums, in bytes; of arrays, the number of elements.
  std::uint32_t size = 0;
  /// BTF_INT_SIGNED and so on; of enums, whether signed; of forward declarations, whether of a union.
  int encoding = 0;
  /// What modifiers, pointers and arrays lead to; of functions, the result.
  Shape* to = nullptr;
  /// Of structs and unions; of functions, the parameters.
  std::vector<Member> members = {};
  std::vector<std::pair<std::string, std::uint64_t>> values = {};

  [[nodiscard]] bool isComposite() const { return kind == Kind::structure || kind == Kind::unionOf; }

  [[nodiscard]] bool isEnum() const { return kind == Kind::enumeration || kind == Kind::enumeration64; }

  [[nodiscard]] bool isModifier() const { return kind >= Kind::definedAs && kind <= Kind::tagged; }
};

/// Makes shapes, owns them.
class Shapes {
 public:
  explicit Shapes(Random& random) : random_(random) {}

  /// A type with a name that a relocation may be about.
  Shape* root(const std::string& name);

  /// A copy of `shape` in which, here and there, something is different: as in another kernel.
  Shape* changed(const Shape& shape, bool isRoot = true);

 private:
  Shape* add(Shape shape);
  Shape* any(unsigned depth);
  Shape* scalar();
  Shape* composite(std::string name, unsigned depth);
  Shape* enumeration(std::string name);
  Shape* modified(Shape* shape);
  Shape* function(unsigned depth);
  void change(Shape& shape);
  void changeMembers(Shape& shape);

  std::string fieldName() { return "f" + std::to_string(names_++); }

  Random& random_;
  unsigned names_ = 0;
  std::vector<std::unique_ptr<Shape>> shapes_;
};

/// Adds `shape` and all that it is made of to `maker`.
TypeId emit(const Shape& shape, BtfMaker& maker, Random& random);

/// `shape` behind its typedefs and modifiers.
const Shape& stripped(const Shape& shape);

} // namespace btfd::differential
