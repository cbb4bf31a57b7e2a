#include "records.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <linux/bpf.h>
#include <linux/btf.h>

namespace btfd::core {

namespace {

/// struct btf_ext_header, which no public header has. The last two fields are missing in old objects.
struct Header {
  std::uint16_t magic;
  std::uint8_t version;
  std::uint8_t flags;
  std::uint32_t length;
  std::uint32_t functionOffset;
  std::uint32_t functionLength;
  std::uint32_t lineOffset;
  std::uint32_t lineLength;
  std::uint32_t relocationOffset;
  std::uint32_t relocationLength;
};

constexpr std::size_t kOldHeader = offsetof(Header, relocationOffset);

/// A program has at most a million instructions, and an object's largest programs some thousand records. What a record
/// becomes takes ten times its room.
constexpr std::size_t kMaximumRecords = 1U << 20U;

/// A run of records of one kind.
struct Part {
  std::string_view name;
  std::uint32_t offset;
  std::uint32_t length;
  std::uint32_t minimumRecord;
};

std::unexpected<Error> corrupt(const std::string& what) {
  return fail("the object's .BTF.ext section is corrupt: " + what, EINVAL);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> section) : section_(section) {}

  Result<Records> read() {
    if (auto done = readHeader(); !done) {
      return std::unexpected(std::move(done.error()));
    }
    // struct bpf_func_info and bpf_line_info: what matters here is only that they are sound.
    const std::array parts{Part{"function", header_.functionOffset, header_.functionLength, 8},
                           Part{"line", header_.lineOffset, header_.lineLength, 16}};
    for (const Part& part : parts) {
      if (auto done = readPart(part, [](std::uint32_t) { return [](std::size_t) {}; }); !done) {
        return std::unexpected(std::move(done.error()));
      }
    }
    const Part part{"CO-RE", header_.relocationOffset, header_.relocationLength, sizeof(struct bpf_core_relo)};
    const auto add = [&](std::uint32_t name) {
      records_.sections.push_back(name);
      return [this](std::size_t place) { addRecord(place); };
    };
    if (part.length <= section_.size() && part.length / part.minimumRecord > kMaximumRecords) {
      return fail("the object's .BTF.ext section has " + std::to_string(part.length / part.minimumRecord) +
                      " CO-RE records; at most " + std::to_string(kMaximumRecords) + " are allowed",
                  E2BIG);
    }
    if (auto done = readPart(part, add); !done) {
      return std::unexpected(std::move(done.error()));
    }
    return std::move(records_);
  }

 private:
  [[nodiscard]] std::uint32_t word(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, section_.data() + at, sizeof(value));
    return records_.foreign ? __builtin_bswap32(value) : value;
  }

  Result<void> readHeader() {
    if (section_.size() < kOldHeader) {
      return corrupt("it is too short for a header");
    }
    std::memcpy(&header_, section_.data(), kOldHeader);
    if (header_.magic != BTF_MAGIC && __builtin_bswap16(header_.magic) != BTF_MAGIC) {
      return corrupt("it does not begin with BTF's magic number");
    }
    records_.foreign = header_.magic != BTF_MAGIC;
    if (header_.version != BTF_VERSION || header_.flags != 0) {
      return fail("the object's .BTF.ext section has version " + std::to_string(header_.version) + " and flags " +
                      std::to_string(header_.flags) + "; version 1 without flags is known",
                  ENOTSUP);
    }
    header_ = {.magic = header_.magic,
               .version = header_.version,
               .flags = header_.flags,
               .length = word(offsetof(Header, length)),
               .functionOffset = word(offsetof(Header, functionOffset)),
               .functionLength = word(offsetof(Header, functionLength)),
               .lineOffset = word(offsetof(Header, lineOffset)),
               .lineLength = word(offsetof(Header, lineLength)),
               .relocationOffset = 0,
               .relocationLength = 0};
    if (header_.length < kOldHeader || header_.length > section_.size()) {
      return corrupt("its header says that it has " + std::to_string(header_.length) + " bytes");
    }
    if (header_.length >= sizeof(Header)) {
      header_.relocationOffset = word(offsetof(Header, relocationOffset));
      header_.relocationLength = word(offsetof(Header, relocationLength));
      std::memcpy(&records_.length, section_.data() + offsetof(Header, relocationLength), sizeof(records_.length));
    }
    return {};
  }

  /// Walks the records of `part`: `enter(nameOffset)` for each section, and what it returns for each record.
  template <typename Enter>
  Result<void> readPart(const Part& part, Enter&& enter) {
    const auto bad = [&](std::string_view what) {
      return corrupt("its " + std::string(part.name) + " records " + std::string(what));
    };
    if (part.length == 0) {
      return {};
    }
    const std::size_t room = section_.size() - header_.length;
    if (part.offset > room || part.length > room - part.offset) {
      return bad("lie outside it");
    }
    if (part.offset % sizeof(std::uint32_t) != 0) {
      return bad("are not aligned to 4 bytes");
    }
    std::size_t at = std::size_t{header_.length} + part.offset;
    const std::size_t end = at + part.length;
    constexpr std::size_t kSectionHeader = 2 * sizeof(std::uint32_t);
    if (part.length < sizeof(std::uint32_t) + kSectionHeader) {
      return bad("are cut off");
    }
    const std::uint32_t size = word(at);
    if (size < part.minimumRecord || size % sizeof(std::uint32_t) != 0) {
      return bad("have the wrong size, " + std::to_string(size) + " bytes");
    }
    at += sizeof(std::uint32_t);
    while (at < end) {
      if (end - at < kSectionHeader) {
        return bad("are cut off");
      }
      const std::uint32_t name = word(at);
      const std::uint32_t count = word(at + sizeof(std::uint32_t));
      at += kSectionHeader;
      if (count == 0 || count > (end - at) / size) {
        return bad("are " + std::to_string(count) + " for one section, which is not what there is room for");
      }
      const auto record = enter(name);
      for (std::uint32_t i = 0; i < count; ++i, at += size) {
        record(at);
      }
    }
    return {};
  }

  void addRecord(std::size_t at) {
    records_.records.push_back({.section = static_cast<std::uint32_t>(records_.sections.size() - 1),
                                .instructionOffset = word(at),
                                .type = word(at + 4),
                                .access = word(at + 8),
                                .kind = static_cast<Kind>(word(at + 12))});
  }

  std::span<const std::byte> section_;
  Header header_{};
  Records records_;
};

/// The field of the section's header that says how long the CO-RE records are; nothing if the header is an old one,
/// without them.
std::span<std::byte> lengthField(std::span<std::byte> section) {
  if (section.size() < sizeof(Header)) {
    return {};
  }
  Header header{};
  std::memcpy(&header, section.data(), sizeof(header));
  const std::uint32_t length = header.magic == BTF_MAGIC ? header.length : __builtin_bswap32(header.length);
  return length < sizeof(Header) ? std::span<std::byte>{}
                                 : section.subspan(offsetof(Header, relocationLength), sizeof(std::uint32_t));
}

} // namespace

bool Records::needKernel() const {
  return std::ranges::any_of(records, [](const Record& record) { return record.kind != Kind::typeIdLocal; });
}

Result<Records> readRecords(std::span<const std::byte> section) {
  return Reader(section).read();
}

void dropRecords(std::span<std::byte> section) {
  // The length of the header stays: libbpf then finds a table of no records.
  std::ranges::fill(lengthField(section), std::byte{0});
}

void restoreRecords(std::span<std::byte> section, std::uint32_t length) {
  const auto field = lengthField(section);
  std::memcpy(field.data(), &length, field.size());
}

} // namespace btfd::core
