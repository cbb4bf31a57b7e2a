#include "parse_btf.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <linux/btf.h>

namespace btfd::btf {

namespace {

// Of the header, which has 24 bytes, and 32 with the place of the layout section (Linux 7.1). Not taken from struct
// btf_header, which has either size.
constexpr std::size_t kHeaderLength = 4;
constexpr std::size_t kTypes = 8;
constexpr std::size_t kStrings = 16;
constexpr std::size_t kLayouts = 24;
constexpr std::uint32_t kShortHeader = 24;
constexpr std::uint32_t kHeaderWithLayouts = 32;

constexpr std::size_t kLayoutEntry = 4;
constexpr std::size_t kType = sizeof(struct btf_type);

/// How many elements libbpf takes a type to have at most: 16 bits of them before it knew of Linux 7.1's format.
constexpr std::uint32_t kMostElements = BTF_INFO_VLEN(std::numeric_limits<std::uint32_t>::max());

/// The kinds that are known here, from BTF_KIND_UNKN to BTF_KIND_ENUM64.
constexpr std::array<KindLayout, 20> kKnown{{{0, 0}, {4, 0},  {0, 0}, {12, 0}, {0, 12}, {0, 12}, {0, 8},
                                             {0, 0}, {0, 0},  {0, 0}, {0, 0},  {0, 0},  {0, 0},  {0, 8},
                                             {4, 0}, {0, 12}, {0, 0}, {4, 0},  {0, 0},  {0, 12}}};

std::unexpected<Error> damaged(const std::string& why) {
  return fail("the BTF is damaged: " + why, EINVAL);
}

/// A part of the BTF behind its header.
struct Part {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
};

/// Reads BTF type by type, and writes it anew where libbpf could not read it.
class Converter {
 public:
  explicit Converter(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<std::optional<std::vector<std::byte>>> convert(KindLayouts& layouts) {
    if (auto read = readHeader(); !read) {
      return std::unexpected(std::move(read.error()));
    }
    if (auto read = readLayouts(layouts); !read) {
      return std::unexpected(std::move(read.error()));
    }
    if (auto walked = walk(layouts); !walked) {
      return std::unexpected(std::move(walked.error()));
    }
    // libbpf passes over a longer header, but not in the other byte order.
    if (!replaced_ && (headerLength_ == kShortHeader || !isForeign_)) {
      return std::nullopt;
    }
    return written();
  }

 private:
  [[nodiscard]] std::uint32_t word(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + at, sizeof(value));
    return isForeign_ ? std::byteswap(value) : value;
  }

  void putWord(std::vector<std::byte>& into, std::size_t at, std::uint32_t value) const {
    value = isForeign_ ? std::byteswap(value) : value;
    std::memcpy(into.data() + at, &value, sizeof(value));
  }

  [[nodiscard]] Part part(std::size_t at) const { return {.offset = word(at), .length = word(at + 4)}; }

  [[nodiscard]] bool liesWithin(const Part& part) const {
    return std::uint64_t{part.offset} + part.length <= bytes_.size() - headerLength_;
  }

  [[nodiscard]] std::span<const std::byte> contentOf(const Part& part) const {
    return bytes_.subspan(std::size_t{headerLength_} + part.offset, part.length);
  }

  Result<void> readHeader() {
    std::uint16_t magic = 0;
    if (bytes_.size() < kShortHeader) {
      return damaged("it is too short for a header");
    }
    std::memcpy(&magic, bytes_.data(), sizeof(magic));
    if (magic != BTF_MAGIC && std::byteswap(magic) != BTF_MAGIC) {
      return damaged("it does not begin with BTF's magic number");
    }
    isForeign_ = magic != BTF_MAGIC;
    headerLength_ = word(kHeaderLength);
    if (headerLength_ < kShortHeader || headerLength_ > bytes_.size()) {
      return damaged("its header says that it has " + std::to_string(headerLength_) + " bytes");
    }
    types_ = part(kTypes);
    strings_ = part(kStrings);
    if (!liesWithin(types_) || !liesWithin(strings_)) {
      return damaged("its types or strings lie outside it");
    }
    return {};
  }

  Result<void> readLayouts(KindLayouts& layouts) const {
    if (headerLength_ < kHeaderWithLayouts) {
      return {};
    }
    const Part section = part(kLayouts);
    if (section.length == 0) {
      return {};
    }
    if (!liesWithin(section) || section.length % kLayoutEntry != 0) {
      return damaged("its layout section lies outside it or is cut off");
    }
    layouts.clear();
    const auto content = contentOf(section);
    for (std::size_t at = 0; at < content.size(); at += kLayoutEntry) {
      layouts.push_back({.fixed = std::to_integer<std::uint8_t>(content[at]),
                         .element = std::to_integer<std::uint8_t>(content[at + 1])});
    }
    return {};
  }

  Result<void> walk(const KindLayouts& layouts) {
    const std::size_t begin = std::size_t{headerLength_} + types_.offset;
    const std::size_t end = begin + types_.length;
    std::size_t number = 1;
    for (std::size_t at = begin; at < end; ++number) {
      const auto named = [&] { return "its type number " + std::to_string(number); };
      if (end - at < kType) {
        return damaged(named() + " is cut off");
      }
      const std::uint32_t information = word(at + sizeof(std::uint32_t));
      // 7 and 24 bits since Linux 7.1; before that, the upper ones of both were always 0.
      const std::uint32_t kind = information >> 24U & 0x7fU;
      const std::uint32_t elements = information & 0xffffffU;
      const bool isKnown = kind > 0 && kind < kKnown.size();
      if (!isKnown && kind >= layouts.size()) {
        return fail(named() + " is of kind " + std::to_string(kind) +
                        ", which is not known here, and the BTF does not say how to skip it",
                    ENOTSUP);
      }
      const KindLayout& layout = isKnown ? kKnown[kind] : layouts[kind];
      const std::uint64_t size = kType + layout.fixed + std::uint64_t{elements} * layout.element;
      if (size > end - at || size % sizeof(std::uint32_t) != 0) {
        return damaged(named() + " is cut off");
      }
      const bool isTooLong = layout.element != 0 && elements > kMostElements;
      if (isTooLong && isKnown && kind != BTF_KIND_DATASEC) {
        return fail(named() + " has " + std::to_string(elements) + " members; libbpf before 1.8 reads " +
                        std::to_string(kMostElements) + " at most",
                    ENOTSUP);
      }
      take(at, static_cast<std::size_t>(size), !isKnown || isTooLong);
      at += static_cast<std::size_t>(size);
    }
    return {};
  }

  /// Takes over the type at `at`, or puts one in its place of which nothing is known: a declaration without a name.
  void take(std::size_t at, std::size_t size, bool replace) {
    if (replace && !replaced_) {
      replaced_ = true;
      const auto before = bytes_.subspan(std::size_t{headerLength_} + types_.offset);
      const std::size_t length = at - headerLength_ - types_.offset;
      newTypes_.assign(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(length));
    }
    if (!replaced_) {
      return;
    }
    if (replace) {
      newTypes_.resize(newTypes_.size() + kType);
      putWord(newTypes_, newTypes_.size() - 2 * sizeof(std::uint32_t), std::uint32_t{BTF_KIND_FWD} << 24U);
    } else {
      const auto type = bytes_.subspan(at, size);
      newTypes_.insert(newTypes_.end(), type.begin(), type.end());
    }
  }

  [[nodiscard]] std::vector<std::byte> written() const {
    const std::span<const std::byte> types = replaced_ ? std::span<const std::byte>(newTypes_) : contentOf(types_);
    const auto strings = contentOf(strings_);
    std::vector<std::byte> result(bytes_.begin(), bytes_.begin() + kShortHeader);
    putWord(result, kHeaderLength, kShortHeader);
    putWord(result, kTypes, 0);
    putWord(result, kTypes + 4, static_cast<std::uint32_t>(types.size()));
    putWord(result, kStrings, static_cast<std::uint32_t>(types.size()));
    putWord(result, kStrings + 4, static_cast<std::uint32_t>(strings.size()));
    result.insert(result.end(), types.begin(), types.end());
    result.insert(result.end(), strings.begin(), strings.end());
    return result;
  }

  std::span<const std::byte> bytes_;
  bool isForeign_ = false;
  std::uint32_t headerLength_ = 0;
  Part types_;
  Part strings_;
  /// The types so far, from the first on that was replaced.
  bool replaced_ = false;
  std::vector<std::byte> newTypes_;
};

BtfHandle byLibbpf(std::span<const std::byte> bytes, struct ::btf* base) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  return BtfHandle(base == nullptr ? btf__new(bytes.data(), size) : btf__new_split(bytes.data(), size, base));
}

} // namespace

Result<std::optional<std::vector<std::byte>>> readableBtf(std::span<const std::byte> bytes, KindLayouts& layouts) {
  return Converter(bytes).convert(layouts);
}

Result<ParsedBtf> parseBtf(std::span<const std::byte> bytes, struct ::btf* base, const KindLayouts& layouts) {
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    return fail("the BTF is too large", EFBIG);
  }
  ParsedBtf parsed{.btf = {}, .layouts = layouts};
  const auto readable = readableBtf(bytes, parsed.layouts);
  if (!readable) {
    return std::unexpected(readable.error());
  }
  parsed.btf = byLibbpf(*readable ? std::span<const std::byte>(**readable) : bytes, base);
  if (!parsed.btf) {
    return failErrno("the BTF is damaged", errno);
  }
  return parsed;
}

} // namespace btfd::btf
