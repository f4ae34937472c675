// SPDX-License-Identifier: Apache-2.0
// Where the rows of a parameter table are, as a value: with every rank, with a stage of a pipeline, or in a slice of the arena,
// one a rank. Arenas of an optimizer's state, initial values, broadcasts, norms and checkpoints read it. It is a pure function of
// the table and of the number of ranks, so that all of them know who has what without a message.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "buckets.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan {

/// What a placement is made for: the rows of the table in the order of the arena, and what those need who work on a slice.
struct ArenaTable {
  std::span<const Entry> rows{};
  long stored = 0;          ///< scalars of the arena
  bool whole_rows = false;  ///< no slice may end within a row: a transform of tensors sees each at once
};

/// Slices of [0, stored), as even as whole cache lines allow, wherever they end.
constexpr std::vector<Range> even_slices(long stored, int owners) {
  std::vector<Range> slices;
  for (int r = 0; r < owners; ++r) slices.push_back(even_range(stored, owners, r));
  return slices;
}

namespace detail {
/// Rows from the first on into slices of at most `most` scalars; what lies between rows belongs to the one before.
constexpr std::vector<Range> fill_slices(std::span<const Entry> rows, long stored, long most) {
  std::vector<Range> slices{{0, 0}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const long end = i + 1 < rows.size() ? rows[i + 1].offset : stored;
    Range& last = slices.back();
    if (end - last.begin > most && last.end > last.begin) slices.push_back({last.end, end});
    else last.end = end;
  }
  return slices;
}
}  // namespace detail

/// Slices that end at rows; the largest is as small as that allows. The last ones may be empty.
constexpr std::vector<Range> slices_at_rows(std::span<const Entry> rows, long stored, int owners) {
  long too_small = 0, most = stored;  // all in one slice
  while (most - too_small > 1) {
    const long middle = too_small + (most - too_small) / 2;
    const std::vector<Range> slices = detail::fill_slices(rows, stored, middle);
    long largest = 0;
    for (const Range& r : slices) largest = std::max(largest, r.end - r.begin);
    const bool enough = largest <= middle && slices.size() <= static_cast<std::size_t>(owners);
    (enough ? most : too_small) = middle;
  }
  std::vector<Range> slices = detail::fill_slices(rows, stored, most);
  slices.back().end = stored;
  slices.resize(static_cast<std::size_t>(owners), {stored, stored});
  return slices;
}

/// The slices of a table: at its rows where somebody needs them whole, else even.
constexpr std::vector<Range> slices(const ArenaTable& table, int owners) {
  return table.whole_rows ? slices_at_rows(table.rows, table.stored, owners) : even_slices(table.stored, owners);
}

/// The rows that begin within `part`, by their numbers: [begin, end).
constexpr Range rows_within(std::span<const Entry> rows, Range part) {
  Range found{};
  for (const Entry& e : rows) {
    found.begin += e.offset < part.begin;
    found.end += e.offset < part.end;
  }
  return {found.begin, std::max(found.begin, found.end)};
}

/// What an owner of a placement is, and has.
enum class PlacementKind {
  replicated,  ///< owners are ranks: each has all rows
  staged,      ///< owners are the stages of a pipeline: each has its rows, whoever runs it
  sliced,      ///< owners are ranks: each has a slice of the arena, which may be empty
};

/// Which owner has which scalars of one parameter arena; and which of them is the one who asks.
class Placement {
 public:
  constexpr Placement() = default;

  /// All of it with each rank.
  static constexpr Placement replicated(long stored) { return {PlacementKind::replicated, {{0, stored}}, 0}; }
  /// parts[r] with rank r, as rank `own` sees it.
  static constexpr Placement sliced(std::vector<Range> parts, int own) { return {PlacementKind::sliced, std::move(parts), own}; }
  /// parts[s] with stage s.
  static constexpr Placement staged(std::vector<Range> parts) { return {PlacementKind::staged, std::move(parts), 0}; }

  constexpr PlacementKind kind() const { return kind_; }
  /// Owners that are told apart: 1 where all have the same.
  constexpr int owners() const { return static_cast<int>(parts_.size()); }
  /// What an owner has; of a replicated placement any.
  constexpr Range part(int owner) const {
    return parts_.empty() ? Range{} : parts_[kind_ == PlacementKind::replicated ? 0 : static_cast<std::size_t>(owner)];
  }
  /// What the one who asks has.
  constexpr Range own() const { return part(own_); }
  /// Scalars of each owner, in their order: as all_gather_v takes them.
  constexpr std::vector<std::size_t> counts() const {
    std::vector<std::size_t> n;
    for (const Range& r : parts_) n.push_back(static_cast<std::size_t>(r.end - r.begin));
    return n;
  }
  /// The owners that have some of a row: [begin, end). More than one: it is cut, and a sum over it is one over them.
  constexpr Range owners_of(const Entry& row) const {
    Range found{};
    for (int k = 0; k < owners(); ++k) {
      const Range p = part(k);
      if (p.begin >= row.offset + row.stored || p.end <= row.offset || p.begin == p.end) continue;
      if (found.begin == found.end) found.begin = k;
      found.end = k + 1;
    }
    return found;
  }
  /// Is no row cut.
  constexpr bool keeps_whole(std::span<const Entry> rows) const {
    return std::all_of(rows.begin(), rows.end(), [&](const Entry& e) {
      const Range by = owners_of(e);
      return by.end - by.begin <= 1;
    });
  }

 private:
  constexpr Placement(PlacementKind kind, std::vector<Range> parts, int own) : kind_(kind), parts_(std::move(parts)), own_(own) {}

  PlacementKind kind_ = PlacementKind::replicated;
  std::vector<Range> parts_{};
  int own_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
