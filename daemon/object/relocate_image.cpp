#include "relocate_image.h"

#include <bpf/btf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <unordered_map>

#include <linux/bpf.h>

namespace btfd::object {

namespace {

std::size_t offsetIn(std::span<const std::byte> image, std::span<const std::byte> part) {
  return static_cast<std::size_t>(part.data() - image.data());
}

} // namespace

Result<btf::BtfHandle> parseObjectBtf(const Section& section) {
  if (section.content.size() > std::numeric_limits<std::uint32_t>::max()) {
    return fail("the object's .BTF section is too large", EFBIG);
  }
  btf::BtfHandle btf(btf__new(section.content.data(), static_cast<std::uint32_t>(section.content.size())));
  if (!btf) {
    return failErrno("the object's .BTF section is corrupt", errno);
  }
  return btf;
}

Result<CoreRecords> CoreRecords::read(const CheckedImage& image) {
  CoreRecords core;
  core.image_ = image.bytes();
  const Section* extension = image.find(".BTF.ext");
  if (extension == nullptr) {
    return core;
  }
  auto records = core::readRecords(extension->content);
  if (!records) {
    return std::unexpected(std::move(records.error()));
  }
  if (records->records.empty()) {
    return core;
  }
  const Section* section = image.find(".BTF");
  if (section == nullptr) {
    return fail("the object has CO-RE relocations in .BTF.ext, but no .BTF section that says what they are about",
                EINVAL);
  }
  auto btf = parseObjectBtf(*section);
  if (!btf) {
    return std::unexpected(std::move(btf.error()));
  }
  core.btf_ = std::move(*btf);
  core.extension_ = extension->content;
  core.records_ = std::move(*records);
  if (auto apart = image.checkApart(); !apart) {
    return std::unexpected(std::move(apart.error()));
  }
  core.findSections(image);
  auto functions = image.functions();
  if (!functions) {
    return std::unexpected(std::move(functions.error()));
  }
  core.functions_ = std::move(*functions);
  return core;
}

/// Finds the code that records are for, as libbpf does: the first section of the name, if it holds programs.
void CoreRecords::findSections(const CheckedImage& image) {
  std::unordered_map<std::string_view, const Section*> byName;
  std::size_t longest = 0;
  for (const Section& section : image.sections()) {
    byName.emplace(section.name, &section);
    longest = std::max(longest, section.name.size());
  }
  for (const std::uint32_t name : records_.sections) {
    const char* text = types().string(name);
    const auto found = byName.find(std::string_view(text, ::strnlen(text, longest + 1)));
    const bool isCode = found != byName.end() && found->second->isCode && !found->first.empty();
    sections_.push_back(isCode ? *found->second : Section{});
    indexes_.push_back(isCode ? image.indexOf(*found->second) : 0);
  }
}

std::span<std::byte> CoreRecords::inCopy(std::span<std::byte> image, std::span<const std::byte> part) const {
  return part.empty() ? std::span<std::byte>{} : image.subspan(offsetIn(image_, part), part.size());
}

std::vector<core::Relocation> CoreRecords::resolve(std::span<std::byte> image, const core::Targets& targets) const {
  if (empty()) {
    return {};
  }
  std::vector<std::span<std::byte>> sections;
  sections.reserve(sections_.size());
  for (const Section& section : sections_) {
    sections.push_back(inCopy(image, section.content));
  }
  return core::relocate(types(), records_, sections, targets);
}

std::vector<core::Relocation> CoreRecords::relocate(ClientBytes& bytes, const core::Targets& targets) const {
  auto relocations = resolve(bytes.writable(bytes.bytes()), targets);
  drop(bytes);
  return relocations;
}

void CoreRecords::drop(ClientBytes& bytes) const {
  drop(bytes.writable(bytes.bytes()));
}

void CoreRecords::drop(std::span<std::byte> image) const {
  if (!empty()) {
    core::dropRecords(inCopy(image, extension_));
  }
}

void CoreRecords::poison(std::span<std::byte> image, const core::Relocation& relocation) const {
  const auto code = inCopy(image, sections_[relocation.record.section].content);
  core::poisonInstruction(code, relocation.record.instructionOffset, records_.foreign);
}

const Function* CoreRecords::find(const core::Relocation& relocation) const {
  // Sorted by section and offset: the last one that begins at or before the instruction.
  const std::pair place{indexes_[relocation.record.section], std::uint64_t{relocation.record.instructionOffset}};
  const auto after = std::ranges::upper_bound(
      functions_, place, {}, [](const Function& each) { return std::pair(each.section, each.offset); });
  if (after == functions_.begin()) {
    return nullptr;
  }
  const Function& function = *std::prev(after);
  return function.section == place.first && place.second - function.offset < function.size ? &function : nullptr;
}

std::string_view CoreRecords::functionOf(const core::Relocation& relocation) const {
  const Function* function = find(relocation);
  return function == nullptr ? std::string_view{} : function->name;
}

std::uint32_t CoreRecords::instructionOf(const core::Relocation& relocation) const {
  const Function* function = find(relocation);
  const std::uint64_t begin = function == nullptr ? 0 : function->offset;
  return static_cast<std::uint32_t>((relocation.record.instructionOffset - begin) / sizeof(struct bpf_insn));
}

std::pair<std::size_t, std::size_t> CoreRecords::placeOf(const core::Relocation& relocation) const {
  return {indexes_[relocation.record.section], relocation.record.instructionOffset / sizeof(struct bpf_insn)};
}

bool CoreRecords::isShared(const core::Relocation& relocation) const {
  return sections_[relocation.record.section].name == ".text";
}

} // namespace btfd::object
