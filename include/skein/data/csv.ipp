// SPDX-License-Identifier: Apache-2.0
// The bodies of csv.hpp.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "../core/workers.hpp"
#include "csv.hpp"
#include "csv_cursor.hpp"
#include "csv_text.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

/// What a pass makes of a column. padded: numbers, some of which have zeros before them, whose texts are kept beside them.
enum class Take { nothing, numbers, padded, texts };

/// The values of one block of lines.
struct CsvBlock {
  std::vector<Column> columns;
  std::vector<Take> found;                             // what the columns turn out to be
  std::int64_t lines = 0, rows = 0, empty_before = 0;  // empty lines before its text, behind the last row that came
  std::optional<CsvFault> empty, fault;                // empty: the first of its empty lines behind its last row
};

/// One pass over the lines. Another is needed where a column of numbers turns out to be one of texts.
class CsvPass {
 public:
  CsvPass(const CsvOptions& options, const std::vector<std::string>& names, std::vector<Take> take)
      : options_(options), missing_(options.missing), take_(std::move(take)), right_(take_) {
    for (std::size_t c = 0; c < names.size(); ++c) columns_.emplace_back(names[c], kind(take_[c]));
  }

  /// The lines of a stretch; `line` is the number of the first, and becomes that of the line behind them.
  void add(const CsvText& input, const std::vector<std::string_view>& texts, std::int64_t& line) {
    while (blocks_.size() < texts.size()) blocks_.push_back({columns_of_block(), take_, 0, 0, 0, {}, {}});
    if (texts.size() > 1 && !team_) team_ = std::make_unique<Workers>(options_.threads, Denormals::keep);
    std::atomic<std::size_t> next = 0;
    together(texts.size() > 1, [&] {
      for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < texts.size();) read(texts[i], blocks_[i]);
    });
    std::size_t place = input.place();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      check(blocks_[i], input.path(), line, place);
      line += blocks_[i].lines;
      place += texts[i].size();
    }
    if (!took_right()) return;
    within_limit(input, place, bytes_to_widen(texts.size()));
    next = 0;
    together(texts.size() > 1, [&] {
      for (std::size_t c; (c = next.fetch_add(1, std::memory_order_relaxed)) < columns_.size();)
        for (std::size_t i = 0; i < texts.size(); ++i) append(c, blocks_[i]);
    });
    within_limit(input, place, 0);
  }
  /// What the columns are, and whether the pass took them so.
  const std::vector<Take>& right() const { return right_; }
  bool took_right() const { return right_ == take_; }
  /// All columns that were wanted.
  std::vector<Column> columns() {
    std::vector<Column> wanted;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (take_[c] == Take::nothing) continue;
      wanted.push_back(std::move(columns_[c]));
      if (take_[c] == Take::padded) wanted.back().take_as_numbers();
    }
    return wanted;
  }

 private:
  static Column::Kind kind(Take take) { return take >= Take::padded ? Column::Kind::texts : Column::Kind::numbers; }
  std::vector<Column> columns_of_block() const {
    std::vector<Column> empty;
    for (std::size_t c = 0; c < take_.size(); ++c) empty.emplace_back(std::string(), kind(take_[c]));
    return empty;
  }
  /// Every worker calls `work`, which takes what nobody has taken yet; or the caller alone.
  template <class Work> void together(bool parallel, const Work& work) {
    parallel ? team_->run([&](const Worker&) { work(); }) : work();
  }
  /// A fault of a block whose first line and byte are these.
  static FileError file_error(const CsvFault& fault, const std::string& path, std::int64_t line, std::size_t place) {
    return {path, static_cast<long long>(place + fault.at), skein::text("line {}: {}", line + fault.line - 1, fault.what)};
  }
  void check(CsvBlock& block, const std::string& path, std::int64_t line, std::size_t place) {
    if ((block.rows > 0 || block.fault) && empty_) {
      if (options_.empty_lines == EmptyLines::refused) throw file_error(*empty_, path, 1, 0);
      if (options_.empty_lines == EmptyLines::missing) block.empty_before = empty_lines_;
      empty_.reset();
    }
    if (block.fault) throw file_error(*block.fault, path, line, place);
    if (block.empty) {
      if (!empty_) empty_ = CsvFault{line + block.empty->line - 1, place + block.empty->at, block.empty->what}, empty_lines_ = 0;
      empty_lines_ += block.lines - block.empty->line + 1;
    }
    for (std::size_t c = 0; c < columns_.size(); ++c) right_[c] = std::max(right_[c], block.found[c]);
  }
  void append(std::size_t c, const CsvBlock& block) {
    for (std::int64_t i = 0; i < block.empty_before; ++i) columns_[c].add_missing();
    columns_[c].append(block.columns[c]);
  }
  /// What the first blocks add beside their own values: 4 bytes for each value of a column that becomes wide, and empty lines.
  std::uint64_t bytes_to_widen(std::size_t blocks) const {
    std::uint64_t bytes = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      bool widens = false;
      for (std::size_t i = 0; i < blocks; ++i) {
        widens = widens || (!columns_[c].wide() && blocks_[i].columns[c].wide());
        bytes += 8 * static_cast<std::uint64_t>(blocks_[i].empty_before);
      }
      if (widens) bytes += 4 * static_cast<std::uint64_t>(columns_[c].size());
    }
    return bytes;
  }
  void within_limit(const CsvText& input, std::size_t place, std::uint64_t more) const {
    std::uint64_t bytes = more;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      bytes += columns_[c].bytes() + (take_[c] == Take::padded ? 8 * static_cast<std::uint64_t>(columns_[c].texts().size()) : 0);
    if (bytes > options_.limit && bytes - options_.limit > input.stored())
      throw FileError(input.path(), static_cast<long long>(place),
                      text("becomes a table of more than {} bytes: give the options of read_csv a larger .limit, or name "
                           "the .columns that are wanted",
                           bytes));
  }
  void read(std::string_view text, CsvBlock& block) const {
    for (Column& column : block.columns) column.clear();
    block.found = take_;
    block.lines = block.rows = block.empty_before = 0, block.empty.reset();
    CsvCursor cursor(text, options_.separator);
    try {
      for (; read_empty(cursor, block); ++block.rows) read_line(cursor, block);
      block.lines = cursor.line() - 1;
    } catch (const CsvFault& fault) { block.fault = fault; }
  }
  /// Takes the empty lines, which may be rows where there is one column; false at the end of the text.
  bool read_empty(CsvCursor& cursor, CsvBlock& block) const {
    const std::int64_t line = cursor.line();
    const std::size_t place = cursor.place();
    const bool more = cursor.more();
    if (columns_.size() != 1 || cursor.line() == line) return more;
    CsvFault fault{line, place,
                   "is empty, which in a table of one column may be a row without a value: give the options of read_csv "
                   ".empty_lines = EmptyLines::missing if it is, EmptyLines::skipped if it is not"};
    if (!more) block.empty = std::move(fault);
    else if (options_.empty_lines == EmptyLines::refused) throw fault;
    else if (options_.empty_lines == EmptyLines::missing)
      for (std::int64_t i = line; i < cursor.line(); ++i) block.columns[0].add_missing();
    return more;
  }
  void read_line(CsvCursor& cursor, CsvBlock& block) const {
    const std::int64_t line = cursor.line();
    std::size_t c = 0;
    for (CsvCursor::Next next = CsvCursor::Next::field; next == CsvCursor::Next::field; ++c) {
      if (c == columns_.size())
        throw CsvFault{line, cursor.place(), skein::text("has more than the {} fields of the first line", columns_.size())};
      next = read_field(cursor, block, c);
    }
    if (c < columns_.size())
      throw CsvFault{line, cursor.field_place(), skein::text("has {} fields, the first line has {}", c, columns_.size())};
  }
  CsvCursor::Next read_field(CsvCursor& cursor, CsvBlock& block, std::size_t c) const {
    Column& column = block.columns[c];
    const Take take = take_[c];
    double number = 0;
    NumberForm form{};
    const auto add = [&] {
      if (form == NumberForm::padded) block.found[c] = std::max(block.found[c], Take::padded);
      column.add(number, form != NumberForm::other);
    };
    if (take == Take::numbers && !missing_.has_number())
      if (const CsvCursor::Next next = cursor.next_number(number, form); next != CsvCursor::Next::unread) return add(), next;
    std::string_view field;
    const CsvCursor::Next next = cursor.next(field);
    if (take == Take::nothing) return next;
    if (missing_.contains(field)) column.add_missing();
    else if (take == Take::texts) column.add(field);
    else if (!parse_number(field, number, form)) block.found[c] = Take::texts;
    else if (take == Take::padded) column.add(field);
    else add();
    return next;
  }

  const CsvOptions& options_;
  MissingWords missing_;
  std::vector<Take> take_, right_;
  std::vector<Column> columns_;
  std::vector<CsvBlock> blocks_;
  std::optional<CsvFault> empty_;  // the first of the empty lines behind the last row so far
  std::int64_t empty_lines_ = 0;
  std::unique_ptr<Workers> team_;
};

/// The names of the columns, and how much of the text they take.
struct CsvHead {
  std::vector<std::string> names;
  std::size_t bytes = 0;
  std::int64_t lines = 0;
};

SKEIN_INLINE CsvHead read_head(std::string_view contents, const std::string& path, const CsvOptions& options) {
  if (contents.starts_with("\xFF\xFE") || contents.starts_with("\xFE\xFF"))
    throw FileError(path, 0, "begins with the mark of UTF-16: save it as UTF-8, which spreadsheets call \"CSV UTF-8\"");
  const std::size_t mark = contents.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  CsvCursor cursor(contents.substr(mark), options.separator);
  const MissingWords missing(options.missing);
  bool named = options.header == Header::present;
  std::vector<std::string> first;
  try {
    if (!cursor.more()) throw FileError(path, 0, "is empty: a table is wanted");
    const std::size_t begin = cursor.place();
    const std::int64_t empty_lines = cursor.line() - 1;
    std::string_view field;
    for (CsvCursor::Next next = CsvCursor::Next::field; next == CsvCursor::Next::field;) {
      next = cursor.next(field);
      if (static_cast<int>(first.size()) == options.most_columns)
        throw CsvFault{cursor.line(), cursor.field_place(),
                       text("has more than {} columns: where that is right, give the options of read_csv more .most_columns",
                            options.most_columns)};
      double number;
      named = named || (options.header == Header::automatic && !missing.contains(field) && !parse_number(field, number));
      first.emplace_back(field);
    }
    if (named) return {std::move(first), mark + cursor.place(), cursor.line() - 1};
    CsvHead head{{}, mark + begin, empty_lines};
    for (std::size_t i = 0; i < first.size(); ++i) head.names.push_back(std::to_string(i));
    return head;
  } catch (const CsvFault& fault) {
    throw FileError(path, static_cast<long long>(mark + fault.at), text("line {}: {}", fault.line, fault.what));
  }
}

/// What the options say about the columns; else numbers, until something else is found.
SKEIN_INLINE std::vector<Take> take_as_asked(const CsvHead& head, const std::string& path, const CsvOptions& options) {
  std::vector<Column> named;
  for (const std::string& name : head.names) named.emplace_back(name);
  const Table table(std::move(named), path);
  std::vector<Take> take(head.names.size(), options.columns.empty() ? Take::numbers : Take::nothing);
  for (const std::string& name : options.columns) take[static_cast<std::size_t>(table.column(name))] = Take::numbers;
  for (const std::string& name : options.text)
    if (Take& t = take[static_cast<std::size_t>(table.column(name))]; t == Take::numbers) t = Take::texts;
  return take;
}

/// Every pass opens the text anew.
SKEIN_INLINE Table read_table(const std::function<CsvText()>& open, const CsvOptions& options) {
  if (options.separator == '"' || options.separator == '\n' || options.separator == '\r')
    throw ArgumentError("a CSV separator cannot be a quote or a line end");
  demand_value("read_csv", ".header", options.header);
  demand_value("read_csv", ".empty_lines", options.empty_lines);
  const int threads = options.threads > 0 ? options.threads : Workers::default_count();
  std::vector<Take> take;
  while (true) {
    CsvText input = open();
    std::vector<std::string_view> texts = input.next(1);
    if (texts.empty()) throw FileError(input.path(), 0, "is empty: a table is wanted");
    const CsvHead head = read_head(texts[0], input.path(), options);
    input.rewind_to(head.bytes);
    if (take.empty()) {  // a look at the first megabyte
      CsvPass sample(options, head.names, take_as_asked(head, input.path(), options));
      std::int64_t line = 1 + head.lines;
      texts = input.next(1);
      sample.add(input, texts, line);
      take = sample.right();
      input.rewind_to(0);
    }
    // Each block has its own columns: of very many columns there are fewer blocks.
    const int blocks = std::clamp(400'000 / static_cast<int>(head.names.size()), 1, 2 * threads);
    if (take.size() != head.names.size())
      throw FileError(
          input.path(), 0,
          text("has {} columns, and had {} when it was read a first time: another file took its place meanwhile, read it again",
               head.names.size(), take.size()));
    CsvPass pass(options, head.names, take);
    std::int64_t line = 1 + head.lines;
    while (!(texts = input.next(blocks)).empty()) pass.add(input, texts, line);
    if (pass.took_right()) return Table(pass.columns(), input.path());
    take = pass.right();
  }
}

}  // namespace skein::inline SKEIN_ABI::data::detail

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE Table parse_csv(std::string_view text, const std::string& path, const CsvOptions& options) {
  return skein::detail::reading(path, [&] {
    return detail::read_table([&] { return detail::CsvText(text, path, options.separator, options.limit); }, options);
  });
}

SKEIN_INLINE Table read_csv(const std::string& path, const CsvOptions& options) {
  return skein::detail::reading(
      path, [&] { return detail::read_table([&] { return detail::CsvText(path, options.separator, options.limit); }, options); });
}

}  // namespace skein::inline SKEIN_ABI::data
