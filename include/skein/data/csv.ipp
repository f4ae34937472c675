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
#include "byte_source.hpp"
#include "csv.hpp"
#include "csv_cursor.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

/// Stretches of whole lines: of a text in memory, or of a file through a buffer.
class CsvText {
 public:
  CsvText(std::string_view text, std::string path, const CsvOptions& o) : text_(text), path_(std::move(path)), options_(o) {}
  CsvText(const std::string& path, const CsvOptions& o) : path_(path), file_(std::make_unique<ByteSource>(path)), options_(o) {}

  const std::string& path() const { return path_; }
  /// Bytes of the file as it is stored.
  std::uint64_t stored() const { return file_ ? file_->stored() : text_.size(); }
  /// The next lines, in blocks of about a megabyte, at most `most`; none at the end.
  std::vector<std::string_view> next(int most) {
    for (std::size_t wanted = static_cast<std::size_t>(most) * block_bytes;; wanted *= 2) {  // twice: a line is longer than that
      const std::string_view rest = ahead(wanted);
      const int parts = static_cast<int>(std::clamp<std::size_t>(rest.size() / least_bytes, 1, static_cast<std::size_t>(most)));
      std::vector<std::size_t> cuts = line_cuts(rest, options_.separator, parts);
      if (ended_ && !rest.empty()) {  // the last line may have no end
        if (cuts.empty() || (cuts.back() < rest.size() && static_cast<int>(cuts.size()) < parts)) cuts.push_back(rest.size());
        cuts.back() = rest.size();
      }
      if (cuts.empty() && !ended_) continue;
      std::vector<std::string_view> blocks;
      for (std::size_t begin = 0; const std::size_t cut : cuts) blocks.push_back(rest.substr(begin, cut - begin)), begin = cut;
      stretch_ = used_;
      if (!cuts.empty()) used_ += cuts.back();
      return blocks;
    }
  }
  /// Goes back to so many bytes behind the beginning of what next() gave.
  void rewind_to(std::size_t bytes) { used_ = stretch_ + bytes; }
  /// The byte of the whole text at which next()'s lines begin.
  std::size_t place() const { return gone_ + stretch_; }

 private:
  static constexpr std::size_t block_bytes = 1 << 20, least_bytes = 1 << 16;

  /// That many bytes which were not used; fewer only at the end.
  std::string_view ahead(std::size_t wanted) {
    if (!file_) {
      ended_ = text_.size() - used_ <= wanted;
      return text_.substr(used_, wanted);
    }
    if (const std::size_t there = buffer_.size() - used_; !ended_ && there < wanted) {
      buffer_.erase(0, used_);
      gone_ += std::exchange(used_, 0);
      buffer_.resize(wanted);
      buffer_.resize(there + file_->read(buffer_.data() + there, wanted - there));
      ended_ = buffer_.size() < wanted;
      if (gone_ + buffer_.size() > options_.limit)
        file_->fail(file_->offset(), "is larger than the limit of " + std::to_string(options_.limit) + " bytes");
    }
    return std::string_view(buffer_).substr(used_);
  }

  std::string_view text_;
  std::string path_;
  std::unique_ptr<ByteSource> file_;
  const CsvOptions& options_;
  std::string buffer_;
  std::size_t used_ = 0, stretch_ = 0, gone_ = 0;
  bool ended_ = false;
};

/// What a pass makes of a column. padded: numbers, some of which have zeros before them, whose texts are kept beside them.
enum class Take { nothing, numbers, padded, texts };

/// The values of one block of lines.
struct CsvBlock {
  std::vector<Column> columns;
  std::vector<Take> found;  // what the columns turn out to be
  std::int64_t lines = 0;
  std::optional<CsvFault> fault;
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
    while (blocks_.size() < texts.size()) blocks_.push_back({columns_of_block(), take_, 0, {}});
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
    next = 0;
    if (took_right())
      together(texts.size() > 1, [&] {
        for (std::size_t c; (c = next.fetch_add(1, std::memory_order_relaxed)) < columns_.size();)
          for (std::size_t i = 0; i < texts.size(); ++i) columns_[c].append(blocks_[i].columns[c]);
      });
    std::uint64_t bytes = 0;
    for (const Column& column : columns_) bytes += column.bytes();
    if (bytes > options_.limit && bytes - options_.limit > input.stored())
      throw FileError(input.path(), static_cast<long long>(place),
                      "becomes a table of more than " + std::to_string(bytes) +
                          " bytes: give the options of read_csv a larger .limit, or name the .columns that are wanted");
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
  void check(const CsvBlock& block, const std::string& path, std::int64_t line, std::size_t place) {
    if (block.fault)
      throw FileError(path, static_cast<long long>(place + block.fault->at),
                      "line " + std::to_string(line + block.fault->line - 1) + ": " + block.fault->what);
    for (std::size_t c = 0; c < columns_.size(); ++c) right_[c] = std::max(right_[c], block.found[c]);
  }
  void read(std::string_view text, CsvBlock& block) const {
    for (Column& column : block.columns) column.clear();
    block.found = take_;
    CsvCursor cursor(text, options_.separator);
    try {
      while (cursor.more()) read_line(cursor, block);
      block.lines = cursor.line() - 1;
    } catch (const CsvFault& fault) { block.fault = fault; }
  }
  void read_line(CsvCursor& cursor, CsvBlock& block) const {
    const std::int64_t line = cursor.line();
    std::size_t c = 0;
    for (CsvCursor::Next next = CsvCursor::Next::field; next == CsvCursor::Next::field; ++c) {
      if (c == columns_.size())
        throw CsvFault{line, cursor.place(),
                       "has more than the " + std::to_string(columns_.size()) + " fields of the first line"};
      next = read_field(cursor, block, c);
    }
    if (c < columns_.size())
      throw CsvFault{line, cursor.field_place(),
                     "has " + std::to_string(c) + " fields, the first line has " + std::to_string(columns_.size())};
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
    if (take == Take::numbers)
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
  std::unique_ptr<Workers> team_;
};

/// The names of the columns, and how much of the text they take.
struct CsvHead {
  std::vector<std::string> names;
  std::size_t bytes = 0;
  std::int64_t lines = 0;
};

SKEIN_INLINE CsvHead read_head(std::string_view text, const std::string& path, const CsvOptions& options) {
  const std::size_t mark = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  CsvCursor cursor(text.substr(mark), options.separator);
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
                       "has more than " + std::to_string(options.most_columns) +
                           " columns: where that is right, give the options of read_csv more .most_columns"};
      double number;
      named = named || (options.header == Header::automatic && !missing.contains(field) && !parse_number(field, number));
      first.emplace_back(field);
    }
    if (named) return {std::move(first), mark + cursor.place(), cursor.line() - 1};
    CsvHead head{{}, mark + begin, empty_lines};
    for (std::size_t i = 0; i < first.size(); ++i) head.names.push_back(std::to_string(i));
    return head;
  } catch (const CsvFault& fault) {
    throw FileError(path, static_cast<long long>(mark + fault.at), "line " + std::to_string(fault.line) + ": " + fault.what);
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
  const int blocks = 2 * (options.threads > 0 ? options.threads : Workers::default_count());
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
  return skein::detail::reading(
      path, [&] { return detail::read_table([&] { return detail::CsvText(text, path, options); }, options); });
}

SKEIN_INLINE Table read_csv(const std::string& path, const CsvOptions& options) {
  return skein::detail::reading(path,
                                [&] { return detail::read_table([&] { return detail::CsvText(path, options); }, options); });
}

}  // namespace skein::inline SKEIN_ABI::data
