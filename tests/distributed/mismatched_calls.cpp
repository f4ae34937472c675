// SPDX-License-Identifier: Apache-2.0
// Collectives of processes that do not match, through shared memory, and through messages with SKEIN_CHECK=1: each case is named
// on every rank. A third of the cases; all with SKEIN_ALL_CASES=1. Those of threads: tests/comm/mismatched_calls_test.cpp.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <skein/mpi.hpp>

#include <catch2/catch.hpp>

#include "../../bench/support/mismatched_calls.hpp"

namespace sk = skein;

namespace {
/// What all ranks were told.
bench::ToldOfMismatch told_of(const bench::MismatchedCalls& c, bool memory) {
  sk::CommOptions o;
  o.deadline = 20;
  o.shared_memory = memory;
  o.check = !memory;  // through shared memory calls are compared in any case
  const auto begin = std::chrono::steady_clock::now();
  const std::string own = bench::thrown_by([&] {
    sk::MpiComm world{MPI_COMM_WORLD, o};
    c.run(world);
  });
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  constexpr std::size_t most = 2000;
  std::string text = own.substr(0, most - 1), all(most * static_cast<std::size_t>(c.ranks), '\0');
  text.resize(most);
  MPI_Allgather(text.data(), most, MPI_CHAR, all.data(), most, MPI_CHAR, MPI_COMM_WORLD);
  bench::ToldOfMismatch told;
  MPI_Allreduce(&seconds, &told.seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  for (std::size_t r = 0; r < static_cast<std::size_t>(c.ranks); ++r) told.texts.emplace_back(all.data() + r * most);
  return told;
}
}  // namespace

TEST_CASE("calls of processes that do not match are named, the same on all, and those of a rank that leaves or throws",
          "[distributed]") {
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size < 2 || size > 4) return;
  const bool memory = GENERATE(true, false);
  const std::vector<bench::MismatchedCalls> all = bench::MismatchedCalls::all(size);
  const std::size_t step = std::getenv("SKEIN_ALL_CASES") ? 1 : 3;
  std::size_t cases = 0, faults = 0;
  for (std::size_t i = static_cast<std::size_t>(size) % step; i < all.size(); i += step) {
    const std::string fault = told_of(all[i], memory).fault(all[i], 12);
    ++cases;
    faults += !fault.empty();
    if (rank == 0 && !fault.empty()) std::printf("%s: %s\n", memory ? "memory" : "messages", fault.c_str());
  }
  if (rank == 0 && step == 1)
    std::printf("%zu cases of %d ranks through %s, %zu not named\n", cases, size, memory ? "shared memory" : "messages", faults);
  CHECK(cases >= (step == 1 ? 87 : 29));
  CHECK(faults == 0);
}
