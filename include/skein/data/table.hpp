// SPDX-License-Identifier: Apache-2.0
// A table: columns with names, of numbers or of texts, in which values may be missing. read_csv() makes one; a TableEncoder
// makes a data set of it. Copies and chosen rows of a table share its columns.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "growing_array.hpp"
#include "in_memory.hpp"
#include "text_pool.hpp"

namespace skein::inline SKEIN_ABI::data {

/// A column of a table: numbers or texts. Whole numbers of 32 bits take 4 bytes each, other numbers 8, texts 4 and each different
/// text once. Numbers of which a file has some with zeros before them, such as 02114, take as much as their texts.
class Column {
 public:
  enum class Kind { numbers, texts };
  explicit Column(std::string name, Kind kind = Kind::numbers)
      : name_(std::move(name)), storage_(kind == Kind::texts ? Storage::texts : Storage::integers) {}
  /// Numbers; NaN: missing. Throws ArgumentError for an infinite one.
  Column(std::string name, std::span<const double> numbers);
  /// Texts; an empty one: missing.
  Column(std::string name, std::span<const std::string> texts);

  const std::string& name() const { return name_; }
  bool is_text() const { return storage_ == Storage::texts; }
  std::int64_t size() const { return static_cast<std::int64_t>(wide() ? numbers_.size() : integers_.size()); }
  /// A number; NaN where it is missing. Only of a column of numbers.
  double number(std::int64_t row) const {
    const std::size_t i = static_cast<std::size_t>(row);
    if (wide()) return numbers_[i];
    if (keeps_texts()) return integers_[i] < 0 ? missing_number : values_[static_cast<std::size_t>(integers_[i])];
    return integers_[i] == missing_integer ? missing_number : integers_[i];
  }
  /// The number of a text in texts(); -1 where it is missing. Only of a column of texts.
  std::int32_t code(std::int64_t row) const { return integers_[static_cast<std::size_t>(row)]; }
  const TextPool& texts() const { return texts_; }
  bool missing(std::int64_t row) const;
  /// What the values take in memory; of texts at most.
  std::uint64_t bytes() const;
  /// Whether each value takes 8 bytes, not 4.
  bool wide() const { return storage_ == Storage::reals; }
  /// The value as a text: of a number as take_as_numbers() found it, else the shortest that reads back as the same; empty where
  /// it is missing.
  std::string text(std::int64_t row) const;
  /// The first number that stood in a file in a form that text() may not give back, as 1.10 does; -1: none.
  std::int64_t first_reworded() const { return reworded_; }

  /// `as_text`: text() gives back what stood in the file.
  void add(double number, bool as_text = true);
  void add(std::string_view text) { integers_.push_back(texts_.add(text)); }
  void add_missing();
  /// The values of another column of the same kind behind these. Where numbers of one of them keep their texts, those of both do.
  void append(const Column& other);
  /// Texts that are all numbers become numbers, which keep their texts.
  void take_as_numbers();
  /// They have.
  bool keeps_texts() const { return storage_ == Storage::numbers_of_texts; }
  void clear();

 private:
  static constexpr std::int32_t missing_integer = std::numeric_limits<std::int32_t>::min();
  static constexpr double missing_number = std::numeric_limits<double>::quiet_NaN();
  /// Where the values are.
  enum class Storage {
    integers,          ///< integers_: whole numbers
    reals,             ///< numbers_
    texts,             ///< integers_: their numbers in texts_
    numbers_of_texts,  ///< the same, and values_ has the number of each text
  };
  bool has_texts() const { return is_text() || keeps_texts(); }
  void widen();
  void append_by_text(const Column& other);

  std::string name_;
  Storage storage_;
  GrowingArray<std::int32_t> integers_;
  GrowingArray<double> numbers_;
  TextPool texts_;
  std::vector<double> values_;
  std::int64_t reworded_ = -1;
};

/// Columns of equal length. Rows and columns are numbered from 0; messages count data rows from 1.
class Table {
 public:
  Table() = default;
  /// Shares the columns. There is no other move: a table that was moved from is as it was.
  Table(const Table&) = default;
  Table& operator=(const Table&) = default;
  /// `path` stands in messages. Throws ShapeError where columns have not as many values.
  explicit Table(std::vector<Column> columns, std::string path = "the table");

  const std::string& path() const { return path_; }
  std::int64_t rows() const { return rows_; }
  int columns() const { return static_cast<int>(columns_->size()); }
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// The column of that name. Throws ArgumentError that lists what there is.
  int column(std::string_view name) const;

  bool is_text(int column) const { return of(column).is_text(); }
  bool missing(std::int64_t row, int column) const { return of(column).missing(stored_row(row)); }
  /// A number; NaN where it is missing. Throws ArgumentError where the column has texts.
  double number(std::int64_t row, int column) const;
  /// A value as a text; empty where it is missing.
  std::string text(std::int64_t row, int column) const { return of(column).text(stored_row(row)); }
  /// All values of a column; missing ones as above.
  std::vector<double> numbers(std::string_view column) const;
  std::vector<std::string> texts(std::string_view column) const;

  /// Chosen rows in a chosen order. Throws ArgumentError for a row that is not there.
  Table subset(std::span<const std::int64_t> rows) const;
  /// The rows in which none of these columns (none at all: of all) has a missing value.
  Table drop_missing(std::initializer_list<std::string_view> columns = {}) const;

  /// A data set for regression: the named column is the target (a vector of one), all others, as numbers, are the sample. Throws
  /// ArgumentError for texts and missing values: a TableEncoder says what they become.
  InMemory<float> dataset(std::string_view target) const;
  /// A data set for classification: the named column holds class numbers 0, 1, 2, ...
  InMemory<float> labelled(std::string_view target) const;

  /// The hash of the rows that data::split() chose, for Origin::split; 0 where it chose none.
  std::uint64_t split() const { return split_; }
  /// Chosen rows in a chosen order, which say that split() chose them.
  Table split_into(std::span<const std::int64_t> rows) const;

  /// For what reads a table column by column.
  const Column& of(int column) const { return (*columns_)[static_cast<std::size_t>(column)]; }
  std::int64_t stored_row(std::int64_t row) const { return chosen_ ? (*chosen_)[static_cast<std::size_t>(row)] : row; }
  /// Throws ArgumentError: passengers.csv: column "age" has `what` in data row 7: `mend`
  [[noreturn]] void refuse(std::int64_t row, int column, const std::string& what, const std::string& mend) const;
  /// A number that is there and that a float can hold, or an ArgumentError.
  float number_as_float(std::int64_t row, int column) const;

 private:
  Extents sample() const;
  std::vector<float> others(int target) const;

  std::string path_ = "the table";
  std::shared_ptr<const std::vector<Column>> columns_ = std::make_shared<const std::vector<Column>>();
  std::shared_ptr<const std::vector<std::int64_t>> chosen_;  // null: all rows
  std::int64_t rows_ = 0;
  std::uint64_t split_ = 0;
};

namespace detail {
/// What a message may show of a field: short, printable.
std::string shown(std::string_view field);
/// The shortest text that reads back as this number; of an integer of up to 15 digits all of them.
std::string shortest(double number);
/// The number in six digits, for people.
std::string rounded(double number);
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "table.ipp"
#endif
