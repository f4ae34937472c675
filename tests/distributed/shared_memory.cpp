// SPDX-License-Identifier: Apache-2.0
// The shared-memory transport between processes, with the state of a job that has run for days.
#include <catch2/catch.hpp>

#include <chrono>
#include <thread>
#include <vector>

#include "skein/comm/fold.hpp"
#include "skein/comm/mpi/node_meeting.hpp"
#include "skein/comm/node/shared_transport.hpp"

namespace sk = skein;
using sk::comm::Collective, sk::comm::CollectiveCall, sk::comm::SharedTransport;

namespace {
void run(SharedTransport& transport, const CollectiveCall& o, std::uint64_t call) {
  transport.begin(o, call);
  while (!transport.done())
    if (!transport.step()) std::this_thread::yield();
}
}  // namespace

TEST_CASE("sums are right after 2^31 chunks without one") {
  const std::uint64_t before =
      GENERATE(1000u, (std::uint64_t{1} << 31) - 256, (std::uint64_t{1} << 31) + 16, std::uint64_t{3} << 30,
               (std::uint64_t{1} << 32) - 3, (std::uint64_t{1} << 32) + (std::uint64_t{1} << 31) + 16);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  sk::comm::Segment segment;
  REQUIRE(sk::comm::MpiNodeMeeting{MPI_COMM_WORLD}.make(segment, rank, ranks));
  SharedTransport transport(segment, rank, ranks, before);
  // As `before` barriers of one chunk leave it: none of them folded.
  for (const int which : {SharedTransport::In, SharedTransport::Taken})
    segment.line(rank).counter[which] = static_cast<std::uint32_t>(before);
  MPI_Barrier(MPI_COMM_WORLD);
  run(transport, CollectiveCall{}, 0);
  for (std::uint64_t call = 1; call < 10; ++call) {
    std::vector<float> data(100000, static_cast<float>(rank + 1));
    CollectiveCall o;
    o.signature = {Collective::AllReduce, 1, 1, 0, 0, sizeof(float), data.size(), 0};
    o.send = o.recv = data.data();
    o.fold = &sk::comm::fold<float, sk::Sum>;
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    run(transport, o, call);
    CHECK(data == std::vector<float>(100000, static_cast<float>(ranks * (ranks + 1) / 2)));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}
