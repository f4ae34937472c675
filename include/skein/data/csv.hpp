// SPDX-License-Identifier: Apache-2.0
// Reader for tables as comma-separated values (RFC 4180: quotes, doubled quotes, CR LF or LF), with or without a header line,
// plain or gzip. A column whose values are all numbers, or missing, is one of numbers; any other is one of texts. The file is
// read in stretches, whose lines several threads take apart: beside the table, memory is some megabytes a thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "table.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Whether the first line names the columns. automatic: it does if any of its fields is neither a number nor missing.
enum class Header { automatic, present, absent };

/// What an empty line between the rows of a table of one column is: a FileError that names the line; a row without a value; or
/// nothing, as for pandas.read_csv and numpy.loadtxt. Only such a line can be either: in a table of several columns empty lines
/// are always skipped, as are those before the first row's line and behind the last row.
enum class EmptyLines { refused, missing, skipped };

namespace detail {
/// Throw the ArgumentError of a number that is none of these.
inline void demand_value(const char* who, const char* setting, Header value) {
  skein::detail::demand_value(who, setting, value, Header::absent, "automatic, present or absent");
}
inline void demand_value(const char* who, const char* setting, EmptyLines value) {
  skein::detail::demand_value(who, setting, value, EmptyLines::skipped, "refused, missing or skipped");
}
}  // namespace detail

/// How to read a table.
struct CsvOptions {
  Header header = Header::automatic;
  char separator = ',';
  EmptyLines empty_lines = EmptyLines::refused;
  /// Bytes of the file, uncompressed; and of the table's memory so many more than the file has. A line has at most a 16th of it,
  /// or 2 MB a thread. Reading needs beside the table at most three such lines, 16 MB a thread and 1 KB a column.
  std::uint64_t limit = std::uint64_t{1} << 30;
  int most_columns = 100'000;
  std::vector<std::string> columns{};  ///< only these, in the file's order; empty: all
  std::vector<std::string> text{};     ///< columns of texts that look like numbers, such as postcodes
  /// Fields that stand for no value. pandas has these, and "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN" besides.
  std::vector<std::string> missing{"",    "NA",   "N/A",  "n/a",  "#N/A", "#NA",  "nan",
                                   "NaN", "-nan", "-NaN", "null", "NULL", "None", "<NA>"};
  int threads = 0;  ///< 0: the cores of the affinity mask
};

/// Reads a table from text in memory; `path` stands in messages. Throws FileError with line and byte for every fault, and
/// ArgumentError for a column in the options that is not there, and for settings that are no values.
Table parse_csv(std::string_view text, const std::string& path = "the text", const CsvOptions& options = {});

/// Reads a table from a file, plain or gzip.
Table read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "csv.ipp"
#endif
