// SPDX-License-Identifier: Apache-2.0
// What a rank does next with the chunks of a collective that passes through slots of shared memory, as a function of values: no
// memory of others is read here, so that a test can try all orders in which ranks look at each other and move.
#pragma once
#include <cstdint>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// How many chunks of the current call a rank has copied into its slots, has folded (its slice of them), and has taken.
struct ChunkCounts {
  std::int64_t in = 0, folded = 0, taken = 0;
};

/// How the chunks of a call pass.
struct ChunkCall {
  std::int64_t count = 1, depth = 1;  ///< of the call; that the ring of slots holds
  bool folds = false;                 ///< each rank folds its slice of a chunk, and leaves the sums in the slots of all
  bool in_place = false;              ///< spans are shared themselves: slots are not used
};

/// What a rank does with a chunk, or that it has to wait for others.
enum class ChunkStep { wait, fill, fold, take };

namespace detail {
/// All have taken what was in the next chunk's slot, and so has this rank where the others left sums there: that they have
/// counted a chunk does not say that this rank has, whose look at their `folded` may be older than its look at their `taken`.
constexpr bool has_room(const ChunkCall& call, const ChunkCounts& own, const ChunkCounts& others) {
  if (call.in_place) return true;
  if (call.folds && own.in - own.taken >= call.depth) return false;
  return others.taken > own.in - call.depth;
}
}  // namespace detail

/// The next step of a rank that has come as far as `own`. `others`: the least that the other ranks were seen to have done. The
/// counts may have been read at different times, in any order: they only grow, and each condition is that they are high enough.
constexpr ChunkStep next_step(const ChunkCall& call, const ChunkCounts& own, const ChunkCounts& others) {
  if (own.taken < (call.folds ? own.folded : own.in) && own.taken < (call.folds ? others.folded : others.in))
    return ChunkStep::take;
  if (call.folds && own.folded < own.in && own.folded < others.in) return ChunkStep::fold;
  if (own.in < call.count && detail::has_room(call, own, others)) return ChunkStep::fill;
  return ChunkStep::wait;
}

/// The step that a rank waits for while next_step() is `wait`: that of its oldest chunk that is not taken.
constexpr ChunkStep awaited_step(const ChunkCall& call, const ChunkCounts& own) {
  if (own.taken < (call.folds ? own.folded : own.in)) return ChunkStep::take;
  return call.folds && own.folded < own.in ? ChunkStep::fold : ChunkStep::fill;
}

}  // namespace skein::inline SKEIN_ABI::comm
