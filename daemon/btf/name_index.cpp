#include "name_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
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

/// What one pass over a name finds.
struct Scan {
  /// Of the whole name.
  std::uint64_t hash = 0;
  /// Whether there are three underscores in a row, so that there may be a flavor.
  bool separator = false;
};

/// Reads `name` eight bytes at a time. By hand, since the index does this with each name of the kernel: a search and a
/// hash of the C++ library take twice as long for names as short as these.
class Scanner {
 public:
  static Scan scan(std::string_view name) {
    Scanner scanner;
    while (name.size() >= kWord) {
      std::uint64_t word = 0;
      std::memcpy(&word, name.data(), kWord);
      scanner.add(std::endian::native == std::endian::little ? word : __builtin_bswap64(word));
      name.remove_prefix(kWord);
    }
    std::uint64_t rest = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
      rest |= std::uint64_t{static_cast<unsigned char>(name[i])} << 8U * i;
    }
    scanner.add(rest);
    return scanner.scan_;
  }

 private:
  static constexpr std::size_t kWord = sizeof(std::uint64_t);

  void add(std::uint64_t word) {
    // A multiplication and a fold of its upper half: names differ in a few characters, buckets in the lower bits.
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
    scan_.hash = (scan_.hash ^ word) * kOdd;
    scan_.hash ^= scan_.hash >> 32U;

    // The high bit of each byte that is an underscore, and of no other (Hacker's Delight, 6-1); then those with two
    // more before them. The first character is in the lowest byte.
    constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7fU;
    constexpr std::uint64_t kAll = 0x5f5f5f5f5f5f5f5fU;
    const std::uint64_t different = word ^ kAll;
    const std::uint64_t underscores = ~(((different & kLow) + kLow) | different | kLow);
    const std::uint64_t one = underscores << 8U | before_ >> 56U;
    const std::uint64_t two = underscores << 16U | before_ >> 48U;
    scan_.separator = scan_.separator || (underscores & one & two) != 0;
    before_ = underscores;
  }

  Scan scan_;
  /// The underscores of the word before.
  std::uint64_t before_ = 0;
};

/// The hash of a name's essential part.
std::uint64_t essentialHash(std::string_view name) {
  const Scan scan = Scanner::scan(name);
  if (!scan.separator) {
    return scan.hash;
  }
  const std::string_view essential = essentialName(name);
  return essential.size() == name.size() ? scan.hash : Scanner::scan(essential).hash;
}

} // namespace

std::string_view essentialName(std::string_view name) {
  if (!Scanner::scan(name).separator) {
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
    const std::uint32_t bucket = static_cast<std::uint32_t>(essentialHash(name)) & mask;
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
  const std::size_t at = Scanner::scan(essential).hash & (bucketEnds_.size() - 1);
  const std::uint32_t begin = at == 0 ? 0 : bucketEnds_[at - 1];
  return std::span(ids_).subspan(begin, bucketEnds_[at] - begin);
}

std::string_view NameIndex::nameOf(std::uint32_t id) const {
  const char* name = btf__name_by_offset(btf_, btf__type_by_id(btf_, id)->name_off);
  return name == nullptr ? std::string_view{} : std::string_view{name, ::strnlen(name, kLongestName + 1)};
}

} // namespace btfd::btf
