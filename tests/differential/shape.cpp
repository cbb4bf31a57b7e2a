#include "shape.h"

#include <algorithm>
#include <bit>

namespace btfd::differential {

namespace {

using Kind = Shape::Kind;

constexpr std::uint32_t kBits = 8;

std::uint32_t bytesOf(const BtfMaker& maker, TypeId type) {
  const auto size = btf__resolve_size(&maker.btf(), type);
  return size < 0 ? 0 : static_cast<std::uint32_t>(size);
}

/// Places of members: one after the other, aligned to their size, and bitfields where there is room or across words.
class Layout {
 public:
  Layout(bool isUnion, Random& random) : isUnion_(isUnion), random_(random) {}

  std::uint32_t place(std::uint32_t bytes, std::uint32_t bits) {
    const std::uint32_t begin = isUnion_ ? 0 : cursor_;
    std::uint32_t at = begin;
    if (bits == 0) {
      const std::uint32_t align = std::bit_floor(std::clamp(bytes, 1U, 8U)) * kBits;
      at = (begin + align - 1) / align * align;
    } else if (const std::uint32_t unit = bytes * kBits; at / unit != (at + bits - 1) / unit && !random_.oneIn(4)) {
      at = (at + unit - 1) / unit * unit;
    }
    const std::uint32_t end = at + (bits == 0 ? bytes * kBits : bits);
    cursor_ = end;
    end_ = std::max(end_, end);
    return at;
  }

  [[nodiscard]] std::uint32_t bytes() const { return std::max(4U, (end_ + 31) / 32 * 4); }

 private:
  bool isUnion_;
  Random& random_;
  std::uint32_t cursor_ = 0;
  std::uint32_t end_ = 0;
};

TypeId emitComposite(const Shape& shape, BtfMaker& maker, Random& random) {
  const bool isUnion = shape.kind == Kind::unionOf;
  Layout layout(isUnion, random);
  std::vector<test_support::Member> members;
  for (const Shape::Member& each : shape.members) {
    const TypeId type = emit(*each.type, maker, random);
    members.push_back({each.name.c_str(), type, each.bits, layout.place(bytesOf(maker, type), each.bits)});
  }
  const TypeId id = maker.structure(shape.name.c_str(), members, layout.bytes());
  if (isUnion) {
    auto& info = maker.type(id).info;
    info = (info & ~(0x1fU << 24U)) | std::uint32_t{BTF_KIND_UNION} << 24U;
  }
  return id;
}

} // namespace

const Shape& stripped(const Shape& shape) {
  return shape.isModifier() ? stripped(*shape.to) : shape;
}

Shape* Shapes::add(Shape shape) {
  return shapes_.emplace_back(std::make_unique<Shape>(std::move(shape))).get();
}

Shape* Shapes::root(const std::string& name) {
  Shape* root = nullptr;
  switch (random_.below(8)) {
  case 0:
    return enumeration(name);
  case 1:
    root = add({.kind = Kind::definedAs, .name = name});
    root->to = random_.oneIn(3) ? enumeration("") : any(2);
    return root;
  case 2:
    root = add({.kind = Kind::definedAs, .name = name});
    root->to = composite("", 3);
    return root;
  default:
    return composite(name, 3);
  }
}

Shape* Shapes::scalar() {
  static const std::vector<std::uint32_t> kSizes = {1, 2, 4, 8};
  static const std::vector<int> kEncodings = {0, 0, BTF_INT_SIGNED, BTF_INT_SIGNED, BTF_INT_BOOL, BTF_INT_CHAR};
  if (random_.oneIn(12)) {
    return add({.kind = Kind::floating, .name = "float", .size = random_.oneIn(2) ? 4U : 8U});
  }
  const std::uint32_t size = random_.of(kSizes);
  const int encoding = random_.of(kEncodings);
  return add({.kind = Kind::integer,
              .name = (encoding == 0 ? "u" : "s") + std::to_string(size * kBits),
              .size = size,
              .encoding = encoding});
}

Shape* Shapes::enumeration(std::string name) {
  static const std::vector<std::uint64_t> kValues = {0, 1, 2, 100, 0x7fffffff, 0x80000000, 0xffffffff};
  const bool wide = random_.oneIn(3);
  Shape* shape = add({.kind = wide ? Kind::enumeration64 : Kind::enumeration,
                      .name = std::move(name),
                      .size = wide ? 8U : 4U,
                      .encoding = random_.oneIn(2) ? 1 : 0});
  for (std::uint32_t i = random_.below(4) + 1; i > 0; --i) {
    const std::uint64_t value = random_.of(kValues);
    shape->values.emplace_back("E" + std::to_string(names_++), wide ? value << random_.below(33) : value);
  }
  return shape;
}

Shape* Shapes::modified(Shape* shape) {
  static const std::vector<Kind> kKinds = {Kind::definedAs, Kind::constant, Kind::isVolatile, Kind::restricted,
                                           Kind::tagged};
  Shape* modifier = add({.kind = random_.of(kKinds)});
  modifier->name = modifier->kind == Kind::definedAs || modifier->kind == Kind::tagged ? "mod" : "";
  modifier->to = shape;
  return modifier;
}

Shape* Shapes::function(unsigned depth) {
  Shape* shape = add({.kind = Kind::prototype});
  shape->to = any(depth);
  for (std::uint32_t i = random_.below(3); i > 0; --i) {
    shape->members.push_back({"p", any(depth)});
  }
  return shape;
}

Shape* Shapes::any(unsigned depth) {
  if (depth == 0 || random_.oneIn(3)) {
    return random_.oneIn(6) ? enumeration(random_.oneIn(2) ? "" : "color") : scalar();
  }
  Shape* shape = nullptr;
  switch (random_.below(8)) {
  case 0:
  case 1:
    return modified(any(depth));
  case 2:
  case 3:
    shape = add({.kind = Kind::array, .size = random_.below(5)});
    shape->to = any(depth - 1);
    return shape;
  case 4:
    shape = add({.kind = Kind::pointer});
    switch (random_.below(4)) {
    case 0:
      shape->to = add({.kind = Kind::nothing});
      break;
    case 1:
      shape->to = add({.kind = Kind::forward, .name = "elsewhere", .encoding = random_.oneIn(2) ? 1 : 0});
      break;
    case 2:
      shape->to = function(depth - 1);
      break;
    default:
      shape->to = any(depth - 1);
    }
    return shape;
  default:
    return composite(random_.oneIn(2) ? "" : "inner", depth - 1);
  }
}

Shape* Shapes::composite(std::string name, unsigned depth) {
  Shape* shape = add({.kind = random_.oneIn(4) ? Kind::unionOf : Kind::structure, .name = std::move(name)});
  for (std::uint32_t i = random_.below(5) + 1; i > 0; --i) {
    Shape::Member member{fieldName(), any(depth)};
    const Shape& type = stripped(*member.type);
    if (depth > 0 && random_.oneIn(5)) {
      member = {"", composite("", depth - 1)};
    } else if (type.kind == Kind::integer && random_.oneIn(3)) {
      member.bits = random_.below(type.size * kBits) + 1;
    }
    shape->members.push_back(std::move(member));
  }
  return shape;
}

Shape* Shapes::changed(const Shape& shape, bool isRoot) {
  Shape* copy = add(shape);
  if (copy->to != nullptr) {
    copy->to = changed(*copy->to, isRoot && copy->isModifier());
  }
  for (Shape::Member& each : copy->members) {
    each.type = changed(*each.type, false);
    if (each.bits != 0 && stripped(*each.type).kind != Kind::integer) {
      each.bits = 0;
    }
    if (each.bits != 0) {
      each.bits = std::min(each.bits, stripped(*each.type).size * kBits);
    }
  }
  if (random_.oneIn(isRoot ? 2 : 6)) {
    change(*copy);
  }
  return !isRoot && random_.oneIn(12) ? modified(copy) : copy;
}

void Shapes::change(Shape& shape) {
  switch (shape.kind) {
  case Kind::integer:
    shape.size = 1U << random_.below(4);
    shape.encoding = random_.oneIn(2) ? shape.encoding : random_.oneIn(2) ? 0 : BTF_INT_SIGNED;
    if (random_.oneIn(8)) {
      shape.kind = Kind::floating;
      shape.size = 8;
    }
    return;
  case Kind::array:
    shape.size = random_.below(6);
    return;
  case Kind::enumeration:
  case Kind::enumeration64:
    if (random_.oneIn(3)) {
      shape.kind = shape.kind == Kind::enumeration ? Kind::enumeration64 : Kind::enumeration;
      shape.size = shape.kind == Kind::enumeration ? 4 : 8;
    }
    for (auto& [name, value] : shape.values) {
      value += random_.below(3);
      name += random_.oneIn(5) ? "___x" : random_.oneIn(8) ? "y" : "";
    }
    std::ranges::reverse(shape.values);
    return;
  case Kind::structure:
  case Kind::unionOf:
    changeMembers(shape);
    return;
  case Kind::forward:
    shape.encoding = random_.oneIn(2) ? 1 : 0;
    return;
  case Kind::prototype:
    shape.members.push_back({"q", scalar()});
    return;
  default:
    return;
  }
}

void Shapes::changeMembers(Shape& shape) {
  for (unsigned changes = random_.below(3) + 1; changes > 0; --changes) {
    const std::uint32_t at = random_.below(static_cast<std::uint32_t>(shape.members.size()));
    Shape::Member& member = shape.members[at];
    switch (random_.below(9)) {
    case 0:
    case 1:
      shape.members.insert(shape.members.begin() + at, {fieldName(), any(1)});
      break;
    case 2:
      std::swap(member, shape.members.back());
      break;
    case 3: {
      // Into an anonymous struct or union, perhaps behind others.
      Shape* inner = add({.kind = random_.oneIn(2) ? Kind::unionOf : Kind::structure});
      if (random_.oneIn(2)) {
        inner->members.push_back({fieldName(), scalar()});
      }
      inner->members.push_back(member);
      member = {"", random_.oneIn(4) ? modified(inner) : inner};
      break;
    }
    case 4:
      if (shape.members.size() > 1) {
        shape.members.erase(shape.members.begin() + at);
      }
      break;
    case 5:
      if (!member.name.empty()) {
        member.name = fieldName();
      }
      break;
    case 6:
      if (!member.name.empty()) {
        member.type = any(1);
        member.bits = 0;
      }
      break;
    case 7:
      if (const Shape& type = stripped(*member.type); !member.name.empty() && type.kind == Kind::integer) {
        member.bits = member.bits != 0 && random_.oneIn(3) ? 0 : random_.below(type.size * kBits) + 1;
      }
      break;
    default:
      std::ranges::reverse(shape.members);
    }
  }
}

TypeId emit(const Shape& shape, BtfMaker& maker, Random& random) {
  const auto to = [&] { return emit(*shape.to, maker, random); };
  switch (shape.kind) {
  case Kind::integer:
    return maker.integer(shape.name.c_str(), shape.size, shape.encoding);
  case Kind::floating:
    return maker.floating(shape.name.c_str(), shape.size);
  case Kind::pointer:
    return maker.pointer(to());
  case Kind::array:
    return maker.array(to(), shape.size);
  case Kind::structure:
  case Kind::unionOf:
    return emitComposite(shape, maker, random);
  case Kind::enumeration:
  case Kind::enumeration64: {
    std::vector<test_support::Enumerator> values;
    for (const auto& [name, value] : shape.values) {
      values.push_back({name.c_str(), value});
    }
    return shape.kind == Kind::enumeration ? maker.enumeration(shape.name.c_str(), values, shape.encoding != 0)
                                           : maker.enumeration64(shape.name.c_str(), values, shape.encoding != 0);
  }
  case Kind::definedAs:
    return maker.definedAs(shape.name.c_str(), to());
  case Kind::constant:
    return maker.constant(to());
  case Kind::isVolatile:
    return maker.isVolatile(to());
  case Kind::restricted:
    return maker.restricted(to());
  case Kind::tagged:
    return maker.tagged(shape.name.c_str(), to());
  case Kind::forward:
    return maker.forward(shape.name.c_str(), shape.encoding != 0);
  case Kind::prototype: {
    const TypeId result = to();
    std::vector<test_support::Parameter> parameters;
    for (const Shape::Member& each : shape.members) {
      parameters.push_back({each.name.c_str(), emit(*each.type, maker, random)});
    }
    return maker.prototype(result, parameters);
  }
  case Kind::nothing:
    break;
  }
  return 0;
}

} // namespace btfd::differential
