#include "name_index.h"

#include <bit>
#include <cstring>
#include <functional>
#include <utility>

namespace btfd::btf {

namespace {

constexpr std::string_view kFlavorSeparator = "___";

/// The longest name that the kernel takes in BTF (KSYM_NAME_LEN, with its NUL: kernel/bpf/btf.c, __btf_name_valid). Any
/// number of types may refer to one name, so longer ones are not looked at.
constexpr std::size_t kLongestName = 511;

bool isUnderscore(char character) {
  return character == '_';
}

} // namespace

std::string_view essentialName(std::string_view name) {
  // Flavors are rare: one quick search settles nearly every name.
  if (::memmem(name.data(), name.size(), kFlavorSeparator.data(), kFlavorSeparator.size()) == nullptr) {
    return name;
  }
  for (auto at = name.rfind(kFlavorSeparator); at != std::string_view::npos && at > 0;
       at = name.rfind(kFlavorSeparator, at - 1)) {
    const auto after = at + kFlavorSeparator.size();
    if (!isUnderscore(name[at - 1]) && after < name.size() && !isUnderscore(name[after])) {
      return name.substr(0, at);
    }
  }
  return name;
}

NameIndex::NameIndex(const struct ::btf& btf, std::uint32_t firstId) : btf_(&btf) {
  const std::uint32_t endId = btf__type_cnt(&btf);
  if (firstId >= endId) {
    return;
  }
  // About two names a bucket: short chains at half the memory of one a bucket.
  const std::size_t buckets = std::bit_ceil<std::size_t>((endId - firstId) / 2 + 1);
  const auto mask = static_cast<std::uint32_t>(buckets - 1);
  bucketEnds_.assign(buckets, 0);

  constexpr std::uint32_t kUnnamed = UINT32_MAX;
  std::vector<std::uint32_t> bucketOf(endId - firstId, kUnnamed);
  std::size_t named = 0;
  for (std::uint32_t id = firstId; id < endId; ++id) {
    const std::string_view name = nameOf(id);
    if (name.empty() || name.size() > kLongestName) {
      continue;
    }
    const auto hash = std::hash<std::string_view>{}(essentialName(name));
    const std::uint32_t bucket = static_cast<std::uint32_t>(hash) & mask;
    bucketOf[id - firstId] = bucket;
    ++bucketEnds_[bucket];
    ++named;
  }

  // Counting sort: starts first, which filling in turns into ends.
  std::uint32_t start = 0;
  for (std::uint32_t& end : bucketEnds_) {
    start += std::exchange(end, start);
  }
  ids_.resize(named);
  for (std::uint32_t id = firstId; id < endId; ++id) {
    if (const std::uint32_t bucket = bucketOf[id - firstId]; bucket != kUnnamed) {
      ids_[bucketEnds_[bucket]++] = id;
    }
  }
}

std::optional<std::uint32_t> NameIndex::find(std::string_view name, std::uint32_t kind) const {
  for (const std::uint32_t id : bucket(essentialName(name))) {
    if (btf_kind(btf__type_by_id(btf_, id)) == kind && nameOf(id) == name) {
      return id;
    }
  }
  return std::nullopt;
}

std::span<const std::uint32_t> NameIndex::bucket(std::string_view essential) const {
  if (bucketEnds_.empty()) {
    return {};
  }
  const std::size_t at = std::hash<std::string_view>{}(essential) & (bucketEnds_.size() - 1);
  const std::uint32_t begin = at == 0 ? 0 : bucketEnds_[at - 1];
  return std::span(ids_).subspan(begin, bucketEnds_[at] - begin);
}

std::string_view NameIndex::nameOf(std::uint32_t id) const {
  const char* name = btf__name_by_offset(btf_, btf__type_by_id(btf_, id)->name_off);
  return name == nullptr ? std::string_view{} : std::string_view{name, ::strnlen(name, kLongestName + 1)};
}

} // namespace btfd::btf
