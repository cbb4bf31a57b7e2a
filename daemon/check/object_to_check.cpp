#include "object_to_check.h"

#include "object/libbpf_log.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <elf.h>
#include <linux/btf.h>

namespace btfd::check {

Result<ObjectToCheck> ObjectToCheck::read(BorrowedFd file, std::uint64_t limit) {
  auto bytes = object::ClientBytes::read(file, limit);
  if (!bytes) {
    return std::unexpected(std::move(bytes.error()));
  }
  ObjectToCheck object(std::move(*bytes));
  const auto image = object::CheckedImage::check(object.bytes_, object::ByteOrders::any);
  if (!image) {
    return std::unexpected(image.error());
  }
  auto records = object::CoreRecords::read(*image);
  if (!records) {
    return std::unexpected(std::move(records.error()));
  }
  object.records_ = std::move(*records);
  auto code = Code::read(*image);
  if (!code) {
    return std::unexpected(std::move(code.error()));
  }
  object.code_ = std::move(*code);
  const object::LibbpfLog log;
  auto opened = object::openWithLibbpf(object.image(), {}, log);
  if (!opened) {
    return std::unexpected(std::move(opened.error()));
  }
  object.opened_ = std::move(*opened);
  if (std::string why = object::whyNothingToLoad(*object.opened_); !why.empty()) {
    return fail(std::move(why), EINVAL);
  }
  if (auto read = object.readBtf(*image); !read) {
    return std::unexpected(std::move(read.error()));
  }
  return object;
}

std::optional<core::Types> ObjectToCheck::types() const {
  return btf_ ? std::optional(core::Types::ofObject(*btf_)) : std::nullopt;
}

/// libbpf's own copy will not do: it replaces what is in .ksyms as it opens the object.
Result<void> ObjectToCheck::readBtf(const object::CheckedImage& image) {
  const object::Section* section = image.find(".BTF");
  if (section == nullptr || section->content.empty()) {
    return {};
  }
  auto btf = object::parseObjectBtf(*section);
  if (!btf) {
    return std::unexpected(std::move(btf.error()));
  }
  btf_ = std::move(*btf);
  for (core::TypeId id = 1; id < btf__type_cnt(btf_.get()); ++id) {
    if (const struct btf_type& type = *btf__type_by_id(btf_.get(), id); btf_is_datasec(&type)) {
      readSection(type, image);
    }
  }
  std::ranges::stable_sort(externs_, {}, &Extern::name);
  return {};
}

const Extern* ObjectToCheck::findExtern(std::string_view name) const {
  const auto found = std::ranges::lower_bound(externs_, name, {}, &Extern::name);
  return found != externs_.end() && found->name == name ? &*found : nullptr;
}

void ObjectToCheck::readSection(const struct btf_type& section, const object::CheckedImage& image) {
  const std::string_view name = types()->string(section.name_off);
  const bool isStructOps = name == ".struct_ops" || name == ".struct_ops.link";
  const object::Section* content = isStructOps ? image.find(name) : nullptr;
  for (std::uint32_t i = 0; i < btf_vlen(&section); ++i) {
    const struct btf_var_secinfo& entry = btf_var_secinfos(&section)[i];
    if (name == ".ksyms" || name == ".kconfig") {
      readExtern(entry, name == ".kconfig");
    } else if (content != nullptr) {
      readStructOps(entry, *content, image);
    }
  }
}

void ObjectToCheck::readExtern(const struct btf_var_secinfo& entry, bool isConfiguration) {
  const struct btf_type* type = types()->find(entry.type);
  if (type == nullptr || (!btf_is_func(type) && !btf_is_var(type))) {
    return;
  }
  const std::string_view name = types()->string(type->name_off);
  const object::Symbol* symbol = code_.findUndefined(name);
  externs_.push_back({.name = name,
                      .type = entry.type,
                      .isFunction = btf_is_func(type),
                      .isWeak = symbol != nullptr && symbol->binding == STB_WEAK,
                      .isConfiguration = isConfiguration});
}

void ObjectToCheck::readStructOps(const struct btf_var_secinfo& entry, const object::Section& section,
                                  const object::CheckedImage& image) {
  const struct btf_type* variable = types()->find(entry.type);
  if (variable == nullptr || !btf_is_var(variable)) {
    return;
  }
  const auto structure = types()->strip(variable->type);
  if (!structure || !btf_is_struct(structure->type) || entry.offset > section.content.size()) {
    return;
  }
  structOps_.push_back({.variable = types()->string(variable->name_off),
                        .type = structure->id,
                        .offset = entry.offset,
                        .content = section.content.subspan(
                            entry.offset, std::min<std::size_t>(entry.size, section.content.size() - entry.offset)),
                        .references = image.references(section)});
}

std::vector<const struct bpf_program*> ObjectToCheck::programs() const {
  std::vector<const struct bpf_program*> programs;
  struct bpf_program* program = nullptr;
  while ((program = bpf_object__next_program(opened_.get(), program)) != nullptr) {
    if (bpf_program__autoload(program)) {
      programs.push_back(program);
    }
  }
  return programs;
}

} // namespace btfd::check
