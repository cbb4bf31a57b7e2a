#include "line_table.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <linux/bpf.h>
#include <linux/btf.h>

namespace btfd::object {

namespace {

/// The beginning of .BTF.ext (Documentation/bpf/btf.rst, section 4.2).
struct ExtHeader {
  std::uint16_t magic;
  std::uint8_t version;
  std::uint8_t flags;
  std::uint32_t headerLength;
  std::uint32_t functionOffset;
  std::uint32_t functionLength;
  std::uint32_t lineOffset;
  std::uint32_t lineLength;
};

struct LineRecord {
  std::uint32_t offset;
  std::uint32_t file;
  std::uint32_t text;
  std::uint32_t position; ///< Line and column: 22 and 10 bits.
};

/// Reads bytes from the front on.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> rest) : rest_(rest) {}

  template <typename T>
  std::optional<T> take() {
    const auto bytes = takeBytes(sizeof(T));
    if (bytes.size() < sizeof(T)) {
      return std::nullopt;
    }
    T value{};
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }

  /// Fewer than `count` if there are no more.
  std::span<const std::byte> takeBytes(std::size_t count) {
    const auto taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::byte> rest_;
};

std::span<const std::byte> part(std::span<const std::byte> all, std::uint64_t offset, std::uint64_t length) {
  return offset <= all.size() && length <= all.size() - offset ? all.subspan(offset, length)
                                                               : std::span<const std::byte>{};
}

/// The strings of .BTF.
std::span<const std::byte> stringsOf(const CheckedImage& image) {
  const Section* section = image.find(".BTF");
  const auto header = section == nullptr ? std::nullopt : Cursor(section->content).take<struct btf_header>();
  return header ? part(section->content, std::uint64_t{header->hdr_len} + header->str_off, header->str_len)
                : std::span<const std::byte>{};
}

std::string_view stringAt(std::span<const std::byte> strings, std::uint32_t offset) {
  if (offset >= strings.size()) {
    return {};
  }
  const auto* text = reinterpret_cast<const char*>(strings.data() + offset); // NOLINT
  return {text, ::strnlen(text, strings.size() - offset)};
}

std::string_view withoutSpace(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

} // namespace

LineTable LineTable::read(const CheckedImage& image) {
  LineTable table;
  const Section* section = image.find(".BTF.ext");
  const auto header = section == nullptr ? std::nullopt : Cursor(section->content).take<ExtHeader>();
  if (!header || image.isForeign()) {
    return table;
  }
  const auto strings = stringsOf(image);
  Cursor records(part(section->content, std::uint64_t{header->headerLength} + header->lineOffset, header->lineLength));
  const auto recordSize = records.take<std::uint32_t>();
  if (!recordSize || *recordSize < sizeof(LineRecord)) {
    return table;
  }
  while (const auto name = records.take<std::uint32_t>()) {
    const auto count = records.take<std::uint32_t>();
    for (std::uint32_t i = 0; count && i < *count; ++i) {
      const auto record = Cursor(records.takeBytes(*recordSize)).take<LineRecord>();
      if (!record) {
        return table;
      }
      table.lines_.emplace(std::pair(stringAt(strings, *name), std::uint64_t{record->offset}),
                           SourceLine{.file = stringAt(strings, record->file),
                                      .line = BPF_LINE_INFO_LINE_NUM(record->position),
                                      .column = BPF_LINE_INFO_LINE_COL(record->position),
                                      .text = withoutSpace(stringAt(strings, record->text))});
    }
  }
  return table;
}

const SourceLine* LineTable::find(std::string_view section, std::uint64_t offset) const {
  const auto found = lines_.find({section, offset});
  return found == lines_.end() ? nullptr : &found->second;
}

} // namespace btfd::object
