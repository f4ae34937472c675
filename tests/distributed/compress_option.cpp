// SPDX-License-Identifier: Apache-2.0
// Compress and Algorithm over processes, at every number of ranks that this program is started with: the cases of the threads'
// tests.
#include "../support/temporary_folder.hpp"
#include "../support/compress_option_cases.hpp"

#include <skein/mpi.hpp>

namespace cases = compress_option_cases;
namespace sk = skein;

TEST_CASE("gradients through every wire and algorithm over processes", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  cases::wires(world);
  cases::algorithms(world);
}

TEST_CASE("a training with 16-bit gradients round a ring of processes", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  const support::TemporaryFolder folder;
  cases::trains<cases::Half, sk::parallel::Algorithm<sk::parallel::Ring>>(world, world.broadcast(folder / "training", 0));
}
