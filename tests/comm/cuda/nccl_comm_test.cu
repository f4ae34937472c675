// SPDX-License-Identifier: Apache-2.0
// NcclComm on ranks that are threads, a device each: every collective against its serial twin, overlap, deadlines, splits.
#include "skein/comm/nccl/spawn.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "skein/device/cuda/captured_graph.hpp"
#include "skein/device/cuda/launch.hpp"
#include "support/collectives.hpp"
#include "support/pretend_nccl.hpp"

namespace sk = skein;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using collectives::require;

static_assert((sk::assert_communicator<sk::NcclComm, sk::Cuda>(), true));
static_assert(sk::AllReduces<sk::NcclComm> && sk::StartsAllReduce<sk::NcclComm> && sk::ReducesToRoot<sk::NcclComm> &&
              sk::ReduceScatters<sk::NcclComm>);
static_assert(sk::Broadcasts<sk::NcclComm> && sk::AllGathers<sk::NcclComm> && sk::AllToAlls<sk::NcclComm> &&
              sk::Sends<sk::NcclComm> && sk::Splits<sk::NcclComm>);
static_assert(sk::AllReduces<sk::NcclComm, sk::bf16, sk::Mean> && sk::AllReduces<sk::NcclComm, double, sk::Max>);
static_assert(!sk::Reduces<sk::NcclComm, float, collectives::Weighted>);  // a function of one's own
static_assert(!sk::Reduces<sk::NcclComm, std::int16_t, sk::Sum>);         // NCCL has no such type
static_assert(sk::comm::sound<sk::NcclComm, sk::Cuda>);
static_assert(sk::comm::can<sk::NcclComm, sk::comm::Capability::captures>);

namespace {
/// A vector on the rank's device.
template <class T> struct OnDevice {
  sk::Arena<T, sk::Cuda> arena;
  explicit OnDevice(const std::vector<T>& v, sk::Cuda where) : arena(v.size(), where) {
    sk::Copy<sk::Cuda, sk::Cpu>::run(arena.data(), v.data(), v.size() * sizeof(T), where);
  }
  sk::DeviceSpan<T, sk::Cuda> span() { return arena.span(); }
  std::vector<T> get() {
    std::vector<T> v(arena.size());
    sk::Copy<sk::Cpu, sk::Cuda>::run(v.data(), arena.data(), v.size() * sizeof(T), {}, arena.where());
    return v;
  }
};

struct Scale {
  float* x;
  float by;
  SKEIN_HOST_DEVICE void operator()(long i) const { x[i] *= by; }
};
struct AddOne {
  float* x;
  SKEIN_HOST_DEVICE void operator()(long i) const { x[i] += 1; }
};

/// Values whose sums are exact in any order, so that NCCL's order does not matter.
template <class T> std::vector<T> values(int rank, std::size_t n) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(static_cast<float>((rank * 7 + static_cast<int>(i) * 3) % 16));
  return v;
}
template <class T, class Op> std::vector<T> reduced(int ranks, std::size_t n, Op op) {
  std::vector<T> sum = values<T>(0, n);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<T> next = values<T>(r, n);
    for (std::size_t i = 0; i < n; ++i) sum[i] = op(sum[i], next[i]);
  }
  if constexpr (std::is_same_v<Op, sk::Mean>)
    for (T& x : sum)
      x = std::is_integral_v<T> ? static_cast<T>(x / static_cast<T>(ranks)) : static_cast<T>(static_cast<double>(x) / ranks);
  return sum;
}
template <class T> bool near(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) > (sizeof(T) == 2 ? 0.1 : 1e-5)) return false;
  return true;
}

template <class T, class Op> void reductions(sk::NcclComm& world, std::size_t n, Op op) {
  const int ranks = world.size(), me = world.rank();
  const std::string at =
      " of " + std::to_string(n) + " values of " + std::to_string(sizeof(T)) + " bytes on " + std::to_string(ranks) + " ranks";
  OnDevice<T> data(values<T>(me, n), world.where());
  world.all_reduce(data.span(), op);
  require(near(data.get(), reduced<T>(ranks, n, op)), "all_reduce" + at);
  for (int root = 0; root < ranks; ++root) {
    OnDevice<T> mine(values<T>(me, n), world.where());
    world.reduce(mine.span(), op, root);
    require(near(mine.get(), me == root ? reduced<T>(ranks, n, op) : values<T>(me, n)), "reduce" + at);
  }
  const std::size_t whole = n * static_cast<std::size_t>(ranks);
  OnDevice<T> send(values<T>(me, whole), world.where()), part(std::vector<T>(n), world.where());
  world.reduce_scatter(send.span(), part.span(), op);
  const std::vector<T> all = reduced<T>(ranks, whole, op);
  const auto from = all.begin() + static_cast<long>(n) * me;
  require(near(part.get(), std::vector<T>(from, from + static_cast<long>(n))), "reduce_scatter" + at);
  std::vector<std::size_t> counts;
  std::size_t sum = 0, before = 0;
  for (int r = 0; r < ranks; ++r) {
    if (r == me) before = sum;
    counts.push_back(r % 3 == 1 ? 0 : n + static_cast<std::size_t>(r));
    sum += counts.back();
  }
  OnDevice<T> uneven(values<T>(me, sum), world.where()), own(std::vector<T>(counts[static_cast<std::size_t>(me)]), world.where());
  world.reduce_scatter_v(uneven.span(), counts, own.span(), op);
  const std::vector<T> wanted = reduced<T>(ranks, sum, op);
  require(near(own.get(), std::vector<T>(wanted.begin() + static_cast<long>(before),
                                         wanted.begin() + static_cast<long>(before + counts[static_cast<std::size_t>(me)]))),
          "reduce_scatter_v" + at);
}

template <class T> void movements(sk::NcclComm& world, std::size_t n) {
  const int ranks = world.size(), me = world.rank();
  const std::string at = " of " + std::to_string(n) + " values on " + std::to_string(ranks) + " ranks";
  for (int root = 0; root < ranks; ++root) {
    OnDevice<T> data(values<T>(me, n), world.where());
    world.broadcast(data.span(), root);
    require(data.get() == values<T>(root, n), "broadcast" + at);
  }
  std::vector<T> wanted;
  for (int r = 0; r < ranks; ++r)
    for (const T x : values<T>(r, n)) wanted.push_back(x);
  OnDevice<T> mine(values<T>(me, n), world.where()), all(std::vector<T>(wanted.size()), world.where());
  world.all_gather(mine.span(), all.span());
  require(all.get() == wanted, "all_gather" + at);

  std::vector<std::size_t> counts;
  wanted.clear();
  for (int r = 0; r < ranks; ++r) {
    counts.push_back(r % 3 == 1 ? 0 : n + static_cast<std::size_t>(r));
    for (const T x : values<T>(r, counts.back())) wanted.push_back(x);
  }
  OnDevice<T> piece(values<T>(me, counts[static_cast<std::size_t>(me)]), world.where()),
      joined(std::vector<T>(wanted.size()), world.where());
  world.all_gather_v(piece.span(), counts, joined.span());
  require(joined.get() == wanted, "all_gather_v" + at);

  std::vector<T> send;
  wanted.clear();
  for (int r = 0; r < ranks; ++r) {
    for (const T x : values<T>(me * 100 + r, n)) send.push_back(x);
    for (const T x : values<T>(r * 100 + me, n)) wanted.push_back(x);
  }
  OnDevice<T> out(send, world.where()), in(std::vector<T>(send.size()), world.where());
  world.all_to_all(out.span(), in.span());
  require(in.get() == wanted, "all_to_all" + at);

  const int to = (me + 1) % ranks, from = (me + ranks - 1) % ranks;
  OnDevice<T> token(values<T>(me, n), world.where()), came(std::vector<T>(n), world.where());
  {
    auto group = world.group();  // messages that cross
    auto sent = world.isend(token.span(), to);
    auto got = world.irecv(came.span(), from);
    group.end();
    sent.wait();
    got.wait();
    require(got.peer() == from, "peer");
  }
  require(came.get() == values<T>(from, n), "a ring of messages" + at);
}

void everything(sk::NcclComm& world) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
    reductions<float>(world, n, sk::Sum{});
    reductions<float>(world, n, sk::Mean{});
    reductions<double>(world, n, sk::Max{});
    reductions<std::int32_t>(world, n, sk::Min{});
    reductions<std::int64_t>(world, n, sk::Sum{});
    reductions<sk::bf16>(world, n, sk::Sum{});
    reductions<sk::fp16>(world, n, sk::Mean{});
    movements<float>(world, n);
    movements<char>(world, n);
  }
  // values of the host, beside
  const int ranks = world.size(), me = world.rank();
  require(world.all_reduce(me + 1) == ranks * (ranks + 1) / 2, "one int of the host");
  double sums[2] = {1.0 * me, 2.0};
  world.all_reduce(sk::DeviceSpan<double, sk::Cpu>(sums, 2));
  require(sums[0] == ranks * (ranks - 1) / 2 && sums[1] == 2.0 * ranks, "a span of the host");
  require(world.broadcast(std::string(me == 0 ? "said" : ""), 0) == "said", "a text");
  require(world.all_gather(me).size() == static_cast<std::size_t>(ranks), "a value of each");
  world.assert_same("the plan", 17);
  world.barrier();
}

template <class F> std::string thrown(int devices, F&& f, sk::NcclOptions options = {}) {
  std::vector<int> some;
  for (int d = 0; d < devices; ++d) some.push_back(d);
  try {
    sk::spawn(sk::LocalDevices(some), f, options);
  } catch (const sk::CommError& e) { return e.what(); }
  return "";
}
bool has(int devices) {
  if (sk::cuda::device_count() >= devices) return true;
  WARN("needs " << devices << " devices, there are " << sk::cuda::device_count());
  return false;
}
sk::NcclOptions within(double seconds) {
  sk::NcclOptions o;
  o.deadline = seconds;
  return o;
}
/// Captures too, although the ranks are threads of one process.
sk::NcclOptions capturing_within(double seconds) {
  sk::NcclOptions o = within(seconds);
  o.capture_in_one_process = true;
  return o;
}
}  // namespace

TEST_CASE("every collective of NcclComm equals its serial twin") {
  const int devices = GENERATE(1, 2, 3, 4);
  if (!has(devices)) return;
  const bool blocking = GENERATE(false, true);
  sk::NcclOptions options = within(60);
  options.blocking = blocking;
  const std::string said = thrown(
      devices,
      [&](sk::NcclComm& world) {
        require(world.size() == devices && world.where().ordinal == world.rank() && world.node_size() == devices &&
                    world.one_process(),
                "place");
        everything(world);
      },
      options);
  CHECK(said.empty());
}

TEST_CASE("chosen devices, and devices that are not there") {
  if (!has(3)) return;
  std::atomic<int> sum{0};
  sk::spawn(sk::LocalDevices{2, 0}, [&](sk::NcclComm& world) {
    sum += world.where().ordinal * (world.rank() + 1);
    require(sk::cuda::current_device() == world.where(), "the rank's thread works on its device");
  });
  CHECK(sum == 2);
  const auto nothing = [](sk::NcclComm&) {};
  CHECK_THROWS_AS(sk::spawn(sk::LocalDevices{99}, nothing), sk::ArgumentError);
}

TEST_CASE("several processes with several devices each are one world") {
  if (!has(4)) return;
  std::atomic<int> ranks{0};
  sk::spawn(2, [&](sk::ThreadComm& processes) {  // stand for processes: what they say to each other is the same
    const auto check = [&](sk::NcclComm& world) {
      OnDevice<float> x(values<float>(world.rank(), 100), world.where());
      world.all_reduce(x.span());
      require(x.get() == reduced<float>(world.size(), 100, sk::Sum{}), "the sum over all devices");
      ranks += 1 + world.rank() + 100 * world.where().ordinal;
    };
    const int p = processes.rank();
    sk::spawn(
        processes, p == 0 ? sk::LocalDevices{3} : sk::LocalDevices{0, 1},
        [&](sk::NcclComm& world) {
          require(world.size() == 3 && world.where().ordinal == (world.rank() == 0 ? 3 : world.rank() - 1),
                  "the order of the processes");
          check(world);
        },
        within(60));
    sk::comm::launch::LaunchEnvironment environment;
    environment.local_rank = p;
    environment.local_size = 2;
    sk::spawn_blocks(
        processes,
        [&](sk::NcclComm& world) {
          require(world.size() == 4 && world.where().ordinal == world.rank(), "blocks of two");
          check(world);
        },
        within(60), environment);
  });
  CHECK(ranks == 6 + 400 + 10 + 600);
}

TEST_CASE("several calls are in flight beside the caller's stream, which waits where it is told to") {
  if (!has(2)) return;
  const std::string said = thrown(2, [](sk::NcclComm& world) {
    std::vector<OnDevice<float>> buckets;
    for (int i = 0; i < 5; ++i) buckets.emplace_back(values<float>(world.rank(), 500), world.where());
    for (int round = 0; round < 40; ++round) {  // more calls than the ring holds
      std::vector<sk::Request<sk::comm::NcclEngine>> flying;
      for (auto& b : buckets) flying.push_back(world.start_all_reduce(b.span(), sk::Mean{}));
      while (!flying[4].poll()) std::this_thread::yield();
      for (auto& f : flying) f.wait();
      require(flying[2].done(), "waited for");
    }
    for (auto& b : buckets) require(near(b.get(), reduced<float>(2, 500, sk::Mean{})), "after forty means");
    // One thread's kernels before and behind the call, without the host waiting in between.
    OnDevice<float> x(std::vector<float>(1000, 1.0f), world.where());
    sk::cuda::for_each(1000, Scale{x.span().data, 3.0f});
    auto request = world.start_all_reduce(x.span());
    request.wait();
    sk::cuda::for_each(1000, Scale{x.span().data, 0.5f});
    require(x.get() == std::vector<float>(1000, 3.0f), "before and behind");
  });
  CHECK(said.empty());
}

TEST_CASE("a rank that does not come to a collective is named on every rank, and what waits on a device is aborted") {
  if (!has(3)) return;
  std::atomic<int> told{0};
  const std::string text = thrown(
      3,
      [&](sk::NcclComm& world) {
        OnDevice<float> data(values<float>(world.rank(), 5000), world.where());
        world.all_reduce(data.span());
        (void)data.get();
        world.barrier();
        const auto slow = [&] {
          if (world.rank() == 1) std::this_thread::sleep_for(2s);
          world.all_reduce(data.span());
          sk::cuda::synchronize(world.where());  // the host waits for a call that never ends
          world.check();
        };
        try {
          slow();
        } catch (const sk::CommError& e) {
          told += std::string(e.what()) == "all_reduce(Sum) of 5000 float (call 1): rank 1 did not arrive within 0.4 s";
          try {
            world.all_reduce(data.span());
          } catch (const sk::CommError& again) { told += std::string(again.what()) == e.what(); }
          throw;
        }
      },
      within(0.4));
  CHECK(told == 6);
  CHECK_THAT(text, Equals("all_reduce(Sum) of 5000 float (call 1): rank 1 did not arrive within 0.4 s"));
}

TEST_CASE("an exception of one rank ends the others' calls on the device at once") {
  if (!has(2)) return;
  const auto before = std::chrono::steady_clock::now();
  const std::string text = thrown(
      2,
      [](sk::NcclComm& world) {
        if (world.rank() == 1) throw sk::ArgumentError("no data on this rank");
        OnDevice<float> data(values<float>(0, 100), world.where());
        world.all_reduce(data.span());
        sk::cuda::synchronize(world.where());
        world.check();
      },
      within(60));
  CHECK_THAT(text, Equals("rank 1 failed: no data on this rank"));
  CHECK(std::chrono::steady_clock::now() - before < 20s);
}

TEST_CASE("an exception that leaves a group, and is caught, leaves a communicator that works") {
  if (!has(2)) return;
  const std::string said = thrown(
      2,
      [](sk::NcclComm& world) {
        OnDevice<float> data(std::vector<float>(100, 1.0f), world.where());
        try {
          const auto group = world.group();
          const auto request = world.start_all_reduce(data.span());
          throw sk::ArgumentError("a slip");
        } catch (const sk::ArgumentError&) {}
        require(data.get() == std::vector<float>(100, 2.0f), "the group's call");
        world.all_reduce(data.span());
        require(data.get() == std::vector<float>(100, 4.0f), "the call behind it");
      },
      within(5));
  CHECK(said.empty());
}

TEST_CASE("a rank that has returned is named by those who wait for it") {
  if (!has(2)) return;
  const std::string said = thrown(
      2,
      [](sk::NcclComm& world) {
        if (world.rank() == 1) return;
        world.barrier();
      },
      within(30));
  CHECK_THAT(said, Equals("barrier (call 2): rank 1 returned and will not arrive"));
}

TEST_CASE("parts of a communicator, and parts of parts") {
  if (!has(4)) return;
  const std::string said = thrown(
      4,
      [](sk::NcclComm& world) {
        sk::NcclComm half = world.split(world.rank() % 2, -world.rank());
        require(half.size() == 2 && half.rank() == 1 - world.rank() / 2 && half.where() == world.where(),
                "split places a rank wrongly");
        OnDevice<float> data(std::vector<float>(100, static_cast<float>(world.rank())), world.where());
        half.all_reduce(data.span());
        require(data.get() == std::vector<float>(100, world.rank() % 2 ? 4.0f : 2.0f), "all_reduce in a part");
        sk::NcclComm alone = half.split(half.rank());
        alone.all_reduce(data.span());
        require(alone.size() == 1 && data.get()[0] == (world.rank() % 2 ? 4.0f : 2.0f), "a part of one");
        world.barrier();
      },
      within(60));
  CHECK(said.empty());
}

#if defined(SKEIN_CUDA_ON_HOST)
TEST_CASE("a part that cannot be made is gone when NCCL writes its handle after all") {
  sk::NcclOptions options = within(60);
  options.blocking = false;
  skein_pretend_nccl_fail_splits(1);
  const std::string said = thrown(
      2, [](sk::NcclComm& world) { (void)world.split(0); }, options);
  skein_pretend_nccl_fail_splits(0);
  CHECK_THAT(said, Contains("ncclCommSplit"));
  std::this_thread::sleep_for(200ms);  // AddressSanitizer sees what is written to memory that was released
}
#endif

TEST_CASE("calls of the host that differ in a part end the whole") {
  if (!has(3)) return;
  std::atomic<int> told = 0;
  const std::string said = thrown(
      3,
      [&](sk::NcclComm& world) {
        sk::NcclComm part = world.split(world.rank() > 0);
        world.barrier();
        try {
          if (part.rank() == 0) (void)part.all_reduce(1);
          else part.barrier();
        } catch (const sk::CommError&) {}  // who catches it has nothing to go on with
        const auto end = std::chrono::steady_clock::now() + 20s;
        while (std::chrono::steady_clock::now() < end) {
          std::this_thread::sleep_for(1ms);
          try {
            world.check();
          } catch (const sk::CommError& e) {
            told += std::string(e.what()).find("differs between ranks: rank 1: all_reduce(Sum) of 1 int32") != std::string::npos;
            return;
          }
        }
      },
      within(30));
  CHECK(told == 3);
  CHECK(said.empty());
}

TEST_CASE("calls that differ are named where they are compared") {
  if (!has(2)) return;
  sk::NcclOptions options = within(30);
  options.check = true;
  const std::string said = thrown(
      2,
      [](sk::NcclComm& world) {
        OnDevice<float> data(values<float>(world.rank(), 8), world.where());
        world.all_reduce(data.span().sub(0, world.rank() == 1 ? 7 : 8));
      },
      options);
  CHECK_THAT(said, Contains("differs between ranks: rank 0: all_reduce(Sum) of 8 float; rank 1: all_reduce(Sum) of 7 float"));
}

TEST_CASE("collectives are part of a captured step, and replays are watched") {
  if (!has(2)) return;
  const std::string said = thrown(
      2,
      [](sk::NcclComm& world) {
        OnDevice<float> data(std::vector<float>(64, 1.0f), world.where());
        world.all_reduce(data.span());  // connections are made before a capture
        sk::cuda::synchronize(world.where());
        const sk::cuda::CapturedGraph step = sk::cuda::CapturedGraph::capture([&] {
          auto a = world.start_all_reduce(data.span().sub(0, 32));
          auto b = world.start_all_reduce(data.span().sub(32, 64), sk::Mean{});
          require(!a.poll(), "nothing runs while a stream captures");
          a.wait();
          b.wait();
        });
        require(data.get() == std::vector<float>(64, 2.0f), "a capture runs nothing");
        for (int i = 0; i < 3; ++i) {
          step.launch();
          world.replayed();
        }
        std::vector<float> wanted(64, 2.0f);
        for (std::size_t i = 0; i < 32; ++i) wanted[i] = 16.0f;
        require(data.get() == wanted, "three replays");
        world.barrier();
      },
      capturing_within(60));
  CHECK(said.empty());
  const std::string late = thrown(
      2,
      [](sk::NcclComm& world) {
        OnDevice<float> data(std::vector<float>(64, 1.0f), world.where());
        world.all_reduce(data.span());
        sk::cuda::synchronize(world.where());
        const sk::cuda::CapturedGraph step = sk::cuda::CapturedGraph::capture([&] { world.all_reduce(data.span()); });
        if (world.rank() == 1) std::this_thread::sleep_for(1500ms);
        step.launch();
        world.replayed();
        sk::cuda::synchronize(world.where());
        world.check();
      },
      capturing_within(0.3));
  CHECK_THAT(late, Equals("a replayed step (call 1): rank 1 did not arrive within 0.3 s"));
}

TEST_CASE("a captured step of more calls than may be in flight waits for each of them where it is told to") {
  if (!has(2)) return;
  const std::string said = thrown(
      2,
      [](sk::NcclComm& world) {
        constexpr std::size_t calls = sk::comm::CallsInFlight::most + 6;
        OnDevice<float> data(std::vector<float>(calls, 1.0f), world.where());
        world.all_reduce(data.span(), sk::Mean{});
        sk::cuda::synchronize(world.where());
        bool early = false;
        const sk::cuda::CapturedGraph step = sk::cuda::CapturedGraph::capture([&] {
          std::vector<sk::Request<sk::comm::NcclEngine>> flying;
          for (std::size_t i = 0; i < calls; ++i) flying.push_back(world.start_all_reduce(data.span().sub(i, i + 1)));
          early = flying[1].poll();
          flying[0].wait();
          sk::cuda::for_each(1, AddOne{data.span().data});
          for (auto& f : flying) f.wait();
        });
        require(!early, "nothing is complete while a stream captures");
        step.launch();
        world.replayed();
        std::vector<float> wanted(calls, 2.0f);
        wanted[0] = 3.0f;
        require(data.get() == wanted, "the kernel behind the first call");
        world.barrier();
      },
      capturing_within(60));
  CHECK(said.empty());
}

TEST_CASE("a graph that outlives its communicator is released by it, since NCCL waits for such without a limit") {
  for (const int ranks : {1, 2}) {
    if (!has(ranks)) continue;
    std::vector<std::string> said(static_cast<std::size_t>(ranks));
    sk::spawn(ranks, [&](sk::ThreadComm& threads) {
      sk::cuda::CapturedGraph step, other;
      sk::NcclComm world(threads, sk::Cuda{threads.rank()}, capturing_within(60));
      {
        OnDevice<float> data(std::vector<float>(64, 1.0f), world.where());
        sk::NcclComm part = world.split(0, threads.rank());
        part.all_reduce(data.span());
        sk::cuda::synchronize(world.where());
        require(part.engine().graphs() == 0, "no graph yet");
        step = sk::cuda::CapturedGraph::capture([&] {
          part.all_reduce(data.span());
          part.all_reduce(data.span(), sk::Max{});
        });
        {
          const sk::cuda::CapturedGraph short_lived = sk::cuda::CapturedGraph::capture([&] { part.all_reduce(data.span()); });
        }
        other = sk::cuda::CapturedGraph::capture([&] { sk::Memory<sk::Cuda>::clear(data.arena.data(), 4, world.where()); });
        require(part.engine().graphs() == 1, "one graph lives that knows the communicator");
        step.launch();
        part.replayed();
        sk::cuda::synchronize(world.where());
      }
      require(!step, "the communicator has released the graph");
      require(static_cast<bool>(other), "a graph without its calls stays");
      try {
        step.launch();
      } catch (const sk::DeviceError& e) { said[static_cast<std::size_t>(threads.rank())] = e.what(); }
    });
    for (const std::string& s : said) CHECK_THAT(s, Contains("the communicator that it uses has ended"));
  }
}

TEST_CASE("a communicator that is aborted while a graph knows it does not wait for the graph's owner") {
  if (!has(2)) return;
  const std::string said = thrown(
      2,
      [](sk::NcclComm& world) {
        OnDevice<float> data(std::vector<float>(64, 1.0f), world.where());
        world.all_reduce(data.span());
        sk::cuda::synchronize(world.where());
        const sk::cuda::CapturedGraph step = sk::cuda::CapturedGraph::capture([&] { world.all_reduce(data.span()); });
        if (world.rank() == 1) world.fail("enough");
        while (true) {
          world.check();
          std::this_thread::sleep_for(1ms);
        }
      },
      capturing_within(60));
  CHECK_THAT(said, Contains("enough"));
}

TEST_CASE("where ranks share a process their calls are not captured unless that is asked for") {
  if (!has(2)) return;
  std::vector<std::string> said(2);
  const std::string thrown_text = thrown(
      2,
      [&](sk::NcclComm& world) {
        OnDevice<float> data(std::vector<float>(64, 1.0f), world.where());
        require(!world.engine().may_capture() && !world.split(0).engine().may_capture(), "parts neither");
        try {
          (void)sk::cuda::CapturedGraph::capture([&] { world.all_reduce(data.span()); });
        } catch (const sk::DeviceError& e) { said[static_cast<std::size_t>(world.rank())] = e.what(); }
        world.all_reduce(data.span());  // and the communicator goes on
        require(data.get() == std::vector<float>(64, 2.0f), "launched");
      },
      within(60));
  CHECK(thrown_text.empty());
  for (const std::string& s : said)
    CHECK_THAT(s, Contains("share a process are not captured") && Contains("capture_in_one_process"));
}
TEST_CASE("a rank that has a process of its own captures") {
  if (!has(1)) return;
  CHECK(thrown(
            1, [](sk::NcclComm& world) { require(world.engine().may_capture(), "alone"); }, within(60))
            .empty());
}

TEST_CASE("copies between GPUs arrive in memory that is open to NCCL") {
  if (!has(2)) return;
  constexpr std::size_t n = std::size_t{1} << 20;
  const std::string said = thrown(
      2,
      [&](sk::NcclComm& world) {
        if (world.rank() == 0) {  // making the communicator has opened both pools; memory that NCCL has used, and fresh memory
          const sk::Cuda devices[] = {sk::Cuda{0}, sk::Cuda{1}};
          for (const sk::Cuda from : devices)
            for (int round = 0; round < 4; ++round) {
              const sk::Cuda to = devices[1 - from.ordinal];
              OnDevice<float> source(values<float>(from.ordinal + round, n), from);
              sk::Arena<float, sk::Cuda> target(n, to);
              sk::Copy<sk::Cuda, sk::Cuda>::run(target.data(), source.arena.data(), n * sizeof(float), to, from);
              std::vector<float> back(n);
              sk::Copy<sk::Cpu, sk::Cuda>::run(back.data(), target.data(), n * sizeof(float), {}, to);
              require(back == values<float>(from.ordinal + round, n), "what was copied from " + std::to_string(from.ordinal));
            }
        }
        world.barrier();
      },
      within(60));
  CHECK(said.empty());
}

TEST_CASE("a capture that cannot be released when the communicator ends is refused") {
  if (!has(1)) return;
  const std::string said = thrown(
      1,
      [](sk::NcclComm& world) {
        OnDevice<float> data(std::vector<float>(64, 1.0f), world.where());
        cudaStream_t on = sk::cuda::stream(world.where());
        cudaGraph_t graph = nullptr;
        sk::cuda::check(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        std::string text;
        try {
          world.all_reduce(data.span());
        } catch (const sk::ArgumentError& e) { text = e.what(); }
        sk::cuda::check(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
        if (graph) (void)cudaGraphDestroy(graph);
        require(text.find("cuda::CapturedGraph::capture") != std::string::npos, "it says what captures");
        world.all_reduce(data.span());  // and the communicator goes on
      },
      within(60));
  CHECK(said.empty());
}

TEST_CASE("two ranks on one device are refused before NCCL hangs on them") {
  if (!has(1)) return;
  std::string text;
  try {
    sk::spawn(2, [](sk::ThreadComm& threads) { sk::NcclComm world(threads, sk::Cuda{0}); });
  } catch (const sk::CommError& e) { text = e.what(); }
  CHECK_THAT(text, Contains("ranks 0 and 1 both drive the GPU"));
}
