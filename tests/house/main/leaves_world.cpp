// SPDX-License-Identifier: Apache-2.0
// An exception that is none of skein's passes the world's communicator on rank 1, after one of skein's was caught; ctest reads
// which of them the message names. The argument says where main catches it.
#include <cstdio>
#include <stdexcept>
#include <string>

#include <skein/core/run.hpp>
#include <skein/mpi.hpp>

namespace {
void in_a_world(int& argc, char**& argv) {
  skein::MpiComm world{argc, argv};
  try {
    throw skein::ArgumentError("an error of before, that was caught");
  } catch (const skein::ArgumentError&) {}
  if (world.rank() == 1) throw std::runtime_error("the sensor does not answer");
  world.barrier();
}
}  // namespace

int main(int argc, char** argv) {
  const std::string where = argc > 1 ? argv[1] : "";
  if (where == "by_run") return skein::run(argc, argv, [&] { in_a_world(argc, argv); });
  const auto caught = [&] {
    try {
      in_a_world(argc, argv);
    } catch (const std::exception& e) { std::printf("caught: %s\n", e.what()); }
  };
  if (where == "within_run") return skein::run(argc, argv, caught);
  caught();
}
