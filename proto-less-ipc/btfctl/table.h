#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace btfd::btfctl {

enum class Align { Left, Right };

struct Column {
  std::string title;
  Align align = Align::Left;
  /// Whether its cells may be cut to make the table fit. Not for what a person copies, such as ids.
  bool elastic = false;
};

/// Rows under titles, in aligned columns without borders.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// Adds a row. `cells` are as many as there are columns, and printable; an empty cell is shown as "-".
  void add(std::vector<std::string> cells);

  /// The table as lines of text, each ended by a line break.
  ///
  /// If it is wider than `width` columns, elastic columns are cut, the widest first, but not below their title or
  /// eight columns. A `width` of 0 cuts nothing.
  [[nodiscard]] std::string render(std::size_t width) const;

 private:
  [[nodiscard]] std::vector<std::size_t> naturalWidths() const;
  void shrink(std::vector<std::size_t>& widths, std::size_t available) const;
  [[nodiscard]] std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Columns of the terminal that standard output is; 0 if it is none, for what reads a pipe wants all of it.
std::size_t terminalWidth();

} // namespace btfd::btfctl
