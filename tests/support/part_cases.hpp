// SPDX-License-Identifier: Apache-2.0
// Faults in a part of a communicator, and in a part of a part: what its ranks are told names who is at fault by its number in the
// whole. For every transport that splits, of three ranks or more.
#pragma once
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <skein/core/error.hpp>

namespace part_cases {
/// What the last rank does: it makes another call, stands still, returns, throws, sends nothing, believes something else.
enum class Fault { differs, stands_still, returns, throws, silent, believes };
inline constexpr Fault faults[] = {Fault::differs, Fault::stands_still, Fault::returns,
                                   Fault::throws,  Fault::silent,       Fault::believes};

/// What the last rank throws.
struct OwnFault {};

/// Who is at fault has called nothing until rank 1 has waited for as long as its deadline.
inline bool ends_at_deadline(Fault fault) { return fault == Fault::stands_still || fault == Fault::silent; }

/// What rank 1 calls, after all others but the last. Where that waits for it, it is told that rank 1 has given up.
template <class World> void call_second(World& world, World& used, Fault fault, bool of_part) {
  const int last = world.size() - 1;
  std::vector<float> values(100, 1.f);
  int one = 1;
  const std::span<int> token(&one, 1);
  for (int r = 2; r < last && fault != Fault::silent; ++r) world.recv(token, r, 8);
  if constexpr (requires { used.set_deadline(1.0); })
    if (ends_at_deadline(fault)) used.set_deadline(1);
  try {
    if (fault == Fault::silent) used.recv(values, of_part ? 0 : used.size() - 1, 3);
    else used.all_reduce(values);
  } catch (const skein::CommError&) {
    try {
      if (ends_at_deadline(fault)) world.send(token, last, 9);
    } catch (const skein::CommError&) {}  // threads end together
    throw;
  }
}

/// All ranks but the first make a part, of which the last is at fault; of the part's part that one is rank 0. The others come
/// before rank 1, whose deadline is 1 s where its communicator lets each rank have one of its own: however late a busy machine
/// runs them, the last alone is missing.
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
  int one = 1;
  const std::span<int> token(&one, 1);
  if (at_fault) {
    for (auto told = world.irecv(token, 1, 9); !told.poll();) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  if (world.rank() == 1) return call_second(world, used, fault, of_part);
  if (fault == Fault::silent) return;
  const auto start = [&] {
    try {
      return used.start_all_reduce(values);
    } catch (const skein::CommError&) {  // who is at fault was faster: rank 1, which waits for the token, hears it in the part
      world.send(token, 1, 8);
      throw;
    }
  };
  auto request = start();
  world.send(token, 1, 8);
  request.wait();
}

/// What rank 1 is told; `says_end`: a part that an exception has left says so. `within`: its deadline.
inline std::string wanted(Fault fault, int ranks, bool says_end = true, const std::string& within = "1 s") {
  const std::string last = "rank " + std::to_string(ranks - 1);
  switch (fault) {
    case Fault::differs:
      return last + ": barrier";
    case Fault::stands_still:
      return last + " did not arrive within " + within;
    case Fault::returns:
      return last + " returned and will not arrive";
    case Fault::throws:
      return last + (says_end ? " failed: an exception left the scope of its " : " did not arrive within " + within);
    case Fault::silent:
      return "recv from " + last + " (tag 3) on rank 1: no counterpart within " + within;
    default:
      return last + ": another";
  }
}
}  // namespace part_cases
