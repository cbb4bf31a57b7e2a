#include "btfctl/table.h"

#include "btfctl/text.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace btfd::btfctl {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowest = 8;

} // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  std::ranges::for_each(cells, [](std::string& cell) {
    if (cell.empty()) {
      cell += '-';
    }
  });
  rows_.push_back(std::move(cells));
}

std::string Table::render(std::size_t width) const {
  std::vector<std::size_t> widths = naturalWidths();
  if (width > 0) {
    const std::size_t gaps = kGap * (columns_.size() - 1);
    shrink(widths, width - std::min(width, gaps));
  }
  std::vector<std::string> titles;
  std::ranges::transform(columns_, std::back_inserter(titles), &Column::title);
  std::string text = line(titles, widths);
  for (const auto& row : rows_) {
    text += line(row, widths);
  }
  return text;
}

std::vector<std::size_t> Table::naturalWidths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = displayWidth(columns_[i].title);
    for (const auto& row : rows_) {
      widest = std::max(widest, displayWidth(row[i]));
    }
    widths.push_back(widest);
  }
  return widths;
}

void Table::shrink(std::vector<std::size_t>& widths, std::size_t available) const {
  std::size_t total = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  while (total > available) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool canShrink = columns_[i].elastic && widths[i] > std::max(displayWidth(columns_[i].title), kNarrowest);
      if (canShrink && (widest == nullptr || widths[i] > *widest)) {
        widest = &widths[i];
      }
    }
    if (widest == nullptr) {
      return;
    }
    --*widest;
    --total;
  }
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = shortened(cells[i], widths[i]);
    const std::size_t padding = widths[i] - displayWidth(cell);
    text.append(i > 0 ? kGap : 0, ' ');
    text.append(columns_[i].align == Align::Right ? padding : 0, ' ');
    text.append(cell);
    text.append(columns_[i].align == Align::Left ? padding : 0, ' ');
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::size_t terminalWidth() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

} // namespace btfd::btfctl
