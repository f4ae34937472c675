// SPDX-License-Identifier: Apache-2.0
// Any text given to the CSV reader: the first byte chooses the options. A whole table, or a FileError within the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <skein/data/csv.hpp>

#include "target.hpp"

namespace {
void run(fuzz::Input data) {
  if (data.empty()) return;
  using skein::data::Header;
  skein::data::CsvOptions options;
  options.header = data[0] % 3 == 0 ? Header::automatic : data[0] % 3 == 1 ? Header::present : Header::absent;
  options.separator = data[0] & 4 ? ';' : data[0] & 8 ? '\t' : ',';
  using skein::data::EmptyLines;
  options.empty_lines = data[0] & 16 ? EmptyLines::missing : data[0] & 32 ? EmptyLines::skipped : EmptyLines::refused;
  const std::string_view text = fuzz::words(data.subspan(1));
  try {
    const skein::data::Table table = skein::data::parse_csv(text, "fuzz", options);
    if (table.columns() < 1 || static_cast<std::size_t>(table.rows()) > data.size()) std::abort();
    for (int c = 0; c < table.columns(); ++c) {
      if (table.of(c).size() != table.rows()) std::abort();
      for (std::int64_t r = 0; r < table.rows(); ++r)
        if (table.missing(r, c) != table.text(r, c).empty() && !table.is_text(c)) std::abort();
    }
    try {
      if (table.dataset(table.names()[0]).size() != table.rows()) std::abort();
      (void)table.labelled(table.names()[0]);
    } catch (const skein::ArgumentError&) {  // texts, missing values, one column, two of one name
    }
  } catch (const skein::FileError& e) {
    if (e.path() != "fuzz" || e.offset() > static_cast<long long>(text.size())) std::abort();
  }
}

std::vector<fuzz::Bytes> seeds() {
  return {fuzz::bytes_of(std::string(1, '\0') + "a,b\n1,2.5e3\n\"x\"\"y\",\n"),
          fuzz::bytes_of("\x04"
                         "007;NA\r\n-1;+2\r\n"),
          fuzz::bytes_of("\x10"
                         "a\n\n1\r\n\n\n2"),
          fuzz::bytes_of("\x09"
                         "1\t2\n3\t1e-400\n")};
}
}  // namespace

SKEIN_FUZZ_TARGET(csv, run, seeds)
