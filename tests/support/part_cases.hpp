// SPDX-License-Identifier: Apache-2.0
// Faults in a part of a communicator, and in a part of a part: what its ranks are told names who is at fault by its number in the
// whole. For every transport that splits, of three ranks or more.
#pragma once
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace part_cases {
/// What the last rank does: it makes another call, stands still, returns, throws, sends nothing, believes something else.
enum class Fault { differs, stands_still, returns, throws, silent, believes };
inline constexpr Fault faults[] = {Fault::differs, Fault::stands_still, Fault::returns,
                                   Fault::throws,  Fault::silent,       Fault::believes};

/// What the last rank throws.
struct OwnFault {};

/// All ranks but the first make a part, of which the last is at fault; of the part's part that one is rank 0.
template <class World> void act(World& world, Fault fault, bool of_part) {
  const int last = world.size() - 1;
  World part = world.split(world.rank() == 0 ? 0 : 1), inner = part.split(0, -part.rank());
  if (world.rank() == 0) return;
  World& used = of_part ? inner : part;
  const bool at_fault = world.rank() == last;
  std::vector<float> values(100, 1.f);
  if (fault == Fault::believes) return used.assert_same("the plan", at_fault ? "another" : "this");
  if (at_fault && fault == Fault::differs) return used.barrier();
  if (at_fault && fault == Fault::returns) return;
  if (at_fault && fault == Fault::throws) throw OwnFault();
  if (at_fault) return std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  if (fault != Fault::silent) return used.all_reduce(values);
  if (world.rank() == 1) used.recv(values, of_part ? 0 : used.size() - 1, 3);
}

/// What rank 1 is told; `says_end`: a part that an exception has left says so.
inline std::string wanted(Fault fault, int ranks, bool says_end = true) {
  const std::string last = "rank " + std::to_string(ranks - 1);
  switch (fault) {
    case Fault::differs:
      return last + ": barrier";
    case Fault::stands_still:
      return last + " did not arrive within 1 s";
    case Fault::returns:
      return last + " returned and will not arrive";
    case Fault::throws:
      return last + (says_end ? " failed: an exception left the scope of its " : " did not arrive within 1 s");
    case Fault::silent:
      return "recv from " + last + " (tag 3) on rank 1: no counterpart within 1 s";
    default:
      return last + ": another";
  }
}
}  // namespace part_cases
