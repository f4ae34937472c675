// SPDX-License-Identifier: Apache-2.0
// A table in two: at random, by groups (all rows of a patient, a household, a user on one side), or by time (the past for
// training, the future for the test). Rows of one group on both sides, or of the future in the training, make a test too easy.
#pragma once
#include <string>
#include <utility>

#include "../core/random.hpp"
#include "table.hpp"

namespace skein::inline SKEIN_ABI::data {

/// The column whose value says to which group a row belongs.
struct Groups {
  std::string column;
};
/// The column by which rows are in order: numbers, or texts such as 2026-11-22, 2026-11-22 08:30 and 2026-11-22T08:30:00Z, all of
/// one form.
struct TimeOrder {
  std::string column;
};
/// The rows of a group stay together: split(table, 0.8, by_group("patient")).
inline Groups by_group(std::string column) { return {std::move(column)}; }
/// The earlier rows come first: split(table, 0.8, by_time("day")).
inline TimeOrder by_time(std::string column) { return {std::move(column)}; }

/// A random split of the rows: `auto [train, test] = split(table, 0.8, sk::Seed{1})`. The fraction is that of the first part.
std::pair<Table, Table> split(const Table& table, double fraction, Seed seed = {});
/// Whole groups, in random order, go to the first part until it has this fraction of the rows or more. Throws ArgumentError for a
/// row without a group.
std::pair<Table, Table> split(const Table& table, double fraction, const Groups& groups, Seed seed = {});
/// The earliest rows are the first part; rows of one time stay together, in the first part. Throws ArgumentError for a row
/// without a time, or with a text that does not sort as time: 9/1/2020, 09.01.2020, Jan.
std::pair<Table, Table> split(const Table& table, double fraction, const TimeOrder& time);

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "table_split.ipp"
#endif
