// SPDX-License-Identifier: Apache-2.0
// Reader for tables of numbers as comma-separated values (RFC 4180: quotes, doubled quotes, CR LF or LF), with or without a
// header line, plain or gzip; and data sets out of a table by naming its target column. Text columns are refused, by line.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "byte_source.hpp"
#include "in_memory.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Whether the first line names the columns. automatic: it does if any of its fields is no number.
enum class Header { automatic, present, absent };

/// How to read a table.
struct CsvOptions {
  Header header = Header::automatic;
  char separator = ',';
  std::uint64_t limit = std::uint64_t{1} << 32;  ///< bytes of the file, uncompressed
};

/// A table of numbers, row-major.
struct Table {
  std::string path;
  std::vector<std::string> names;  ///< of the columns; "0", "1", ... without a header
  std::vector<double> values;      ///< (rows, columns)
  std::int64_t rows = 0;
  std::int64_t columns() const { return static_cast<std::int64_t>(names.size()); }
  double at(std::int64_t row, std::int64_t column) const { return values[static_cast<std::size_t>(row * columns() + column)]; }

  /// The column of that name. Throws ArgumentError that lists what there is.
  std::int64_t column(std::string_view name) const;
  /// A data set for regression: the named column is the target (a vector of one), all others are the sample.
  InMemory<float> dataset(std::string_view target) const;
  /// A data set for classification: the named column holds class numbers 0, 1, 2, ...
  InMemory<float> labelled(std::string_view target) const;

 private:
  Extents sample() const;
  std::vector<float> others(std::int64_t target) const;
};

namespace detail {
/// One pass over the text; a field at a time.
class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& path, char separator);
  std::int64_t line() const { return line_; }
  std::size_t field_start() const { return start_; }
  /// Skips empty lines; false at the end of the text.
  bool more();
  /// Reads a field into `field`; true if another follows in this line.
  bool next(std::string& field);
  [[noreturn]] void fail(std::int64_t line, std::size_t at, const std::string& what) const;

 private:
  void quoted(std::string& field);

  std::string_view text_;
  const std::string& path_;
  char separator_;
  std::size_t at_ = 0, start_ = 0;
  std::int64_t line_ = 1;
};

/// Reads all of the text as one number, or says that it is none. "nan" and "inf" are no numbers here.
bool parse_number(std::string_view text, double& value);
/// What a message may show of a field: short, printable.
std::string shown(std::string_view field);
}  // namespace detail

/// Reads a table from text in memory; `path` stands in messages. Throws FileError with line and byte for every fault.
Table parse_csv(std::string_view text, const std::string& path, const CsvOptions& options = {});

/// Reads a table from a file, plain or gzip.
Table read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "csv.ipp"
#endif
