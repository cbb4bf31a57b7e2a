#pragma once

#include "checked_image.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

namespace btfd::object {

/// A line of source code.
struct SourceLine {
  std::string_view file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  /// As it is in the file, without the space in front.
  std::string_view text;
};

/// Which source lines the instructions of an object file come from, as its .BTF.ext section has it.
class LineTable {
 public:
  /// Empty where the file has none, or none that makes sense. Refers to the image's bytes.
  static LineTable read(const CheckedImage& image);

  /// The line that begins at the instruction `offset` bytes into section `section`, or null.
  [[nodiscard]] const SourceLine* find(std::string_view section, std::uint64_t offset) const;

 private:
  std::map<std::pair<std::string_view, std::uint64_t>, SourceLine> lines_;
};

} // namespace btfd::object
