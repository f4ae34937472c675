// SPDX-License-Identifier: Apache-2.0
// What a rank has started on one communicator while it waits, or polls, in another: the same checks for every communicator of the
// host. Failures are exceptions, as in collectives.hpp; a rank that is not served would stand until its deadline.
#pragma once
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "collectives.hpp"

namespace progress_cases {
namespace sk = skein;
using collectives::require;

/// Rank 0 comes back to its all-reduce on `first` only once all have met on `second`, which the others do behind theirs.
template <class First, class Second> void collective(First& first, Second& second, std::size_t n) {
  std::vector<double> sum(n, first.rank() + 1.0);
  if (first.rank() == 0) {
    auto started = first.start_all_reduce(sum, sk::Sum{});
    second.barrier();
    started.wait();
  } else {
    first.all_reduce(sum, sk::Sum{});
    second.barrier();
  }
  require(sum == std::vector<double>(n, first.size() * (first.size() + 1) / 2.0), "a sum while its rank waits elsewhere");
}
/// Likewise, but rank 0 polls on `second`.
template <class First, class Second> void polled(First& first, Second& second) {
  std::vector<double> sum(100, 1.0), other(100, 1.0);
  if (first.rank() == 0) {
    auto started = first.start_all_reduce(sum, sk::Sum{});
    auto met = second.start_all_reduce(other, sk::Sum{});
    while (!met.poll()) std::this_thread::yield();
    started.wait();
  } else {
    first.all_reduce(sum, sk::Sum{});
    second.all_reduce(other, sk::Sum{});
  }
  require(sum[99] == first.size() && other[99] == second.size(), "sums while their rank polls elsewhere");
}
/// A message that is longer than what lies between two ranks, which rank 1 takes before it meets the others.
template <class First, class Second> void message(First& first, Second& second) {
  if (first.size() == 1) return;
  std::vector<char> long_one(20'000'000, static_cast<char>(first.rank() + 1));
  if (first.rank() == 0) {
    auto sent = first.isend(long_one, 1, 5);
    second.barrier();
    sent.wait();
  } else {
    if (first.rank() == 1) first.recv(long_one, 0, 5);
    second.barrier();
  }
  require(first.rank() != 1 || long_one == std::vector<char>(20'000'000, 1), "a message while its sender waits elsewhere");
}
/// All of these between a communicator and a part of it of all ranks, both ways.
template <class Comm> void everything(Comm& world) {
  Comm other = world.split(0);
  for (const std::size_t n : {std::size_t{1}, std::size_t{300'000}}) {
    collective(world, other, n);
    collective(other, world, n);
  }
  polled(world, other);
  message(world, other);
  message(other, world);
}
/// A sum that refuses large values: `too_large` is what it says.
struct Checked {
  static constexpr const char* too_large = "a sum beyond 100";
  int operator()(int a, int b) const {
    if (a + b > 100) throw std::overflow_error(too_large);
    return a + b;
  }
};
/// Throws on every rank, on the last what its own Checked has said while it waited in `second` (in the destructor of a request,
/// which throws nothing), which ends for another reason: the ranks that hear of it are gone.
template <class First, class Second> void own_fault(First& first, Second& second, bool in_destructor = false) {
  std::vector<int> data(300'000, 1);
  data.back() = 60;  // of the last rank's slice
  if (first.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  auto sum = first.start_all_reduce(data, Checked{});
  if (first.rank() > 0 && in_destructor) {
    std::vector<int> other(10, 1);
    const auto waited_for = second.start_all_reduce(other, sk::Sum{});
  } else if (first.rank() > 0) {
    second.barrier();
  }
  sum.wait();
}
template <class Comm> void own_fault_with_part(Comm& world, bool of_part, bool in_destructor = false) {
  Comm part = world.split(0);
  if (of_part) own_fault(part, world, in_destructor);
  else own_fault(world, part, in_destructor);
}

}  // namespace progress_cases
