// SPDX-License-Identifier: Apache-2.0
// The pretend NCCL: collectives of threads, groups of one thread, abort of who waits, and the state of communicators that poll.
#include <nccl.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <skein/device/cuda/launch.hpp>
#include <thread>
#include <vector>

namespace sk = skein;

namespace {

/// One rank's device memory, stream and communicator.
struct Rank {
  int rank;
  sk::cuda::Stream stream;
  sk::Arena<float, sk::Cuda> data;
  Rank(int r, long n) : rank((sk::cuda::use(sk::Cuda{r}), r)), data(static_cast<std::size_t>(n), sk::Cuda{r}) {}
  void put(const std::vector<float>& x) {
    sk::Memory<sk::Cuda>::from_host(data.data(), x.data(), x.size() * sizeof(float), sk::Cuda{rank});
  }
  std::vector<float> get() {
    stream.synchronize();
    std::vector<float> x(data.size());
    sk::Memory<sk::Cuda>::to_host(x.data(), data.data(), x.size() * sizeof(float), sk::Cuda{rank});
    return x;
  }
};

template <class F> void on_threads(int n, F f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) threads.emplace_back([=] { f(r); });
  for (auto& t : threads) t.join();
}

}  // namespace

TEST_CASE("pretend NCCL: ranks on threads sum, gather and send") {
  if (sk::cuda::device_count() < 3) return;
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::vector<float>> sums(3), gathered(3), received(3);
  std::vector<int> faults(3);
  on_threads(3, [&](int r) {
    sk::cuda::use(sk::Cuda{r});
    ncclComm_t comm{};
    auto& wrong = faults[static_cast<std::size_t>(r)];
    wrong += ncclCommInitRank(&comm, 3, id, r) != ncclSuccess;
    Rank mine(r, 2), all(r, 6), from(r, 2);
    const float f = static_cast<float>(r + 1);
    mine.put({f, 10 * f});
    wrong += ncclAllReduce(mine.data.data(), mine.data.data(), 2, ncclFloat, ncclSum, comm, mine.stream.get()) != ncclSuccess;
    sums[static_cast<std::size_t>(r)] = mine.get();
    mine.put({f, 10 * f});
    wrong += ncclAllGather(mine.data.data(), all.data.data(), 2, ncclFloat, comm, all.stream.get()) != ncclSuccess;
    gathered[static_cast<std::size_t>(r)] = all.get();
    ncclGroupStart();
    wrong += ncclSend(mine.data.data(), 2, ncclFloat, (r + 1) % 3, comm, mine.stream.get()) != ncclSuccess;
    wrong += ncclRecv(from.data.data(), 2, ncclFloat, (r + 2) % 3, comm, mine.stream.get()) != ncclSuccess;
    wrong += ncclGroupEnd() != ncclSuccess;
    mine.stream.synchronize();
    received[static_cast<std::size_t>(r)] = from.get();
    wrong += ncclCommDestroy(comm) != ncclSuccess;
  });
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(faults[r] == 0);
    CHECK(sums[r] == std::vector<float>{6, 60});
    CHECK(gathered[r] == std::vector<float>{1, 10, 2, 20, 3, 30});
    const float before = static_cast<float>((r + 2) % 3 + 1);
    CHECK(received[r] == std::vector<float>{before, 10 * before});
  }
}

TEST_CASE("pretend NCCL: one thread serves several ranks in a group, and a split has its own ranks") {
  if (sk::cuda::device_count() < 3) return;
  ncclComm_t comms[3], parts[3];
  REQUIRE(ncclCommInitAll(comms, 3, nullptr) == ncclSuccess);
  std::vector<Rank> ranks;
  for (int r = 0; r < 3; ++r) ranks.emplace_back(r, 1);
  for (int r = 0; r < 3; ++r) ranks[static_cast<std::size_t>(r)].put({static_cast<float>(r)});
  ncclGroupStart();
  for (int r = 0; r < 3; ++r) {
    Rank& m = ranks[static_cast<std::size_t>(r)];
    CHECK(ncclAllReduce(m.data.data(), m.data.data(), 1, ncclFloat, ncclAvg, comms[r], m.stream.get()) == ncclSuccess);
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (auto& m : ranks) CHECK(m.get() == std::vector<float>{1});
  ncclGroupStart();
  for (int r = 0; r < 3; ++r)
    CHECK(ncclCommSplit(comms[r], r == 1 ? NCCL_SPLIT_NOCOLOR : 0, -r, &parts[r], nullptr) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  int size = 0, rank = -1;
  CHECK(parts[1] == nullptr);
  CHECK(ncclCommCount(parts[0], &size) == ncclSuccess);
  CHECK(ncclCommUserRank(parts[0], &rank) == ncclSuccess);
  CHECK(size == 2);
  CHECK(rank == 1);
  for (int r : {0, 2}) CHECK(ncclCommDestroy(parts[r]) == ncclSuccess);
  for (ncclComm_t c : comms) CHECK(ncclCommDestroy(c) == ncclSuccess);
  CHECK(ncclCommDestroy(comms[0]) == ncclInvalidArgument);
  sk::cuda::use(sk::Cuda{0});
}

TEST_CASE("pretend NCCL: who waits for a rank that does not come does not block the host, and is freed by abort") {
  if (sk::cuda::device_count() < 2) return;
  ncclComm_t comms[2];
  REQUIRE(ncclCommInitAll(comms, 2, nullptr) == ncclSuccess);
  Rank mine(0, 1);
  REQUIRE(ncclAllReduce(mine.data.data(), mine.data.data(), 1, ncclFloat, ncclSum, comms[0], mine.stream.get()) == ncclSuccess);
  sk::cuda::Event after;
  after.record(mine.stream.get());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_FALSE(after.done());
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
  mine.stream.synchronize();
  CHECK(after.done());
  CHECK(ncclCommAbort(comms[1]) == ncclSuccess);
}

TEST_CASE("pretend NCCL: a communicator that does not block says so until all have come; two ranks of one device are refused") {
  if (sk::cuda::device_count() < 2) return;
  for (const int other : {1, 0}) {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t a{}, b{};
    ncclResult_t state{};
    sk::cuda::use(sk::Cuda{0});
    CHECK(ncclCommInitRankConfig(&a, 2, id, 0, &config) == ncclInProgress);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(ncclCommGetAsyncError(a, &state) == ncclSuccess);
      CHECK(state == ncclInProgress);
    }
    sk::cuda::use(sk::Cuda{other});
    CHECK(ncclCommInitRankConfig(&b, 2, id, 1, &config) == ncclInProgress);
    do REQUIRE(ncclCommGetAsyncError(a, &state) == ncclSuccess);
    while (state == ncclInProgress);
    CHECK(state == (other == 1 ? ncclSuccess : ncclInvalidUsage));
    CHECK(ncclCommAbort(a) == ncclSuccess);
    CHECK(ncclCommAbort(b) == ncclSuccess);
  }
  sk::cuda::use(sk::Cuda{0});
}
