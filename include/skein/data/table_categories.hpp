// SPDX-License-Identifier: Apache-2.0
// Categories of a table's column: which there are, and which one a row has. Categories are texts or numbers, whatever the rows
// were read as: the postcode 02114 is a text although a file with no other one has a column of numbers. For table_encoder.ipp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "table.hpp"

namespace skein::inline SKEIN_ABI::data::detail {

/// A number as shortest() has it.
bool is_short_number(std::string_view text);
/// A category that is a number; 0 and -0 are one.
std::string category_text(double number);
/// The text as a category of numbers has it: 2114 of "02114".
std::string as_number(std::string_view text);

/// The number of a row's category; missing, or not among the categories. Categories that are texts are looked for as they stand
/// in the file, others by their numbers.
class CategoryOf {
 public:
  static constexpr std::int32_t missing = -1, unknown = -2;
  /// The column must outlive it.
  CategoryOf(const Column& column, const std::vector<std::string>& categories, bool of_texts);
  std::int32_t operator()(std::int64_t stored_row) const {
    if (column_.missing(stored_row)) return missing;
    if (column_.is_text()) return numbers_[static_cast<std::size_t>(column_.code(stored_row))];
    return find(of_texts_ ? column_.text(stored_row) : category_text(column_.number(stored_row)));
  }

 private:
  std::int32_t find(std::string_view text) const {
    const std::int32_t number = known_.find(text);
    return number < 0 ? unknown : number;
  }
  const Column& column_;
  bool of_texts_;
  TextPool known_;
  std::vector<std::int32_t> numbers_;  // of the column's texts
};

/// The different values of a column's rows, sorted: texts by their bytes, numbers by size.
std::vector<std::string> categories_of(const Table& table, int column);
/// Throws ArgumentError where a category is given twice.
void check_given(const std::vector<std::string>& categories, const std::string& column);
/// Throws ArgumentError where each of many rows has a category of its own.
void check_repeats(const Table& table, int column, std::size_t categories, bool label);
/// Throws ArgumentError where categories are numbers of a file that a double rounds, so that two may have become one.
void check_exact(const Table& table, int column);
/// Throws ArgumentError where the column's categories are texts and these rows have numbers, whose texts were not kept.
void check_kind(const Table& table, int column);

}  // namespace skein::inline SKEIN_ABI::data::detail

#if !SKEIN_COMPILED
#include "table_categories.ipp"
#endif
