// SPDX-License-Identifier: Apache-2.0
// How many updates the optimizer's state of each parameter has had: as many as the training has had steps, but for parameters
// that were frozen for a while. Adam corrects its means by that number: of a parameter that thaws after thousands of steps they
// begin at zero. PyTorch keeps a step for each parameter, which begins at 1 with the first gradient.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "../plan/program.hpp"
#include "groups.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::optim {

/// The updates of each row of a table of parameters, of a training.
struct StateUpdates {
  std::int64_t steps = 0;               ///< of the training, when they were counted
  std::vector<std::int64_t> of_rows{};  ///< of each row; empty: as many as the steps, of all

  std::int64_t of(std::size_t row) const { return of_rows.empty() ? steps : of_rows[row]; }
  /// Each row has had as many as there were steps.
  bool all_steps() const;
  /// Those of these rows, as a stage has them.
  StateUpdates part(plan::Range rows) const;
  /// The same shares of so many steps: of updates that a server has counted, say.
  StateUpdates scaled_to(std::int64_t count) const;
  /// Fit a table of so many rows. A file may say anything.
  bool fits(std::size_t rows) const;
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & steps & of_rows); }
};

/// Those of a training that has now made so many steps. Rows that are frozen have as many as `before`, and none where their state
/// is not kept: it stands before `dropped` in the arena.
StateUpdates updates_after(const StateUpdates& before, std::int64_t steps, std::span<const plan::Entry> rows,
                           std::span<const ParameterGroupRange> ranges, long dropped);
/// The ranges, cut where the states of neighbouring rows began at different steps: ParameterGroupRange::since.
std::vector<ParameterGroupRange> begun(const std::vector<ParameterGroupRange>& ranges, std::span<const plan::Entry> rows,
                                       const StateUpdates& updates);

}  // namespace skein::inline SKEIN_ABI::optim

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "state_updates.ipp"
#endif
