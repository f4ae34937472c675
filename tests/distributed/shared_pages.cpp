// SPDX-License-Identifier: Apache-2.0
// All-reduces in pages that the ranks share: the bits of every other way, what happens where the pages cannot be had or differ
// between ranks, and what is left of them.
#include "../support/data_parallel_cases.hpp"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include "../support/collectives.hpp"
#include "../support/thrown.hpp"
#include "skein/comm/counted.hpp"
#include "skein/mpi.hpp"
#include "skein/nn/linear.hpp"
#include "skein/nn/relu.hpp"
#include "skein/parallel/compose.hpp"

namespace sk = skein;
using Catch::Matchers::Contains;
using collectives::same_bits;
using support::thrown;

namespace {
sk::CommOptions options(double deadline = 120) {
  sk::CommOptions o;
  o.deadline = deadline;
  return o;
}

/// The address lies in shared memory of this library.
bool is_shared(const void* p) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  for (std::string line; std::getline(maps, line);) {
    std::istringstream text(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    text >> std::hex >> begin >> dash >> end;
    if (begin <= at && at < end) return line.find("/skein-") != std::string::npos || line.find("/dev/shm/#") != std::string::npos;
  }
  return false;
}
/// Names in /dev/shm that this process has made.
int names_left() {
  const std::string mine = "-" + std::to_string(getpid()) + "-";
  int n = 0;
  for (const auto& f : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = f.path().filename();
    n += name.starts_with("skein-") && name.find(mine) != std::string::npos;
  }
  return n;
}

/// `count` values at `offset` of the pages, all-reduced where they are, and their serial twin.
template <class T, class Op>
void sums_of(sk::MpiComm& world, const sk::comm::SharedPages& pages, std::size_t offset, std::size_t count, const Op& op) {
  const std::span<T> all = pages.span<T>(), part = all.subspan(offset, count);
  for (T& x : all) x = T(3);
  const std::vector<T> own = collectives::values<T>(world.rank(), count);
  std::copy(own.begin(), own.end(), part.begin());
  world.all_reduce(part, op);
  CHECK(same_bits(std::vector<T>(part.begin(), part.end()), collectives::reduced<T>(world.size(), count, op)));
  CHECK(std::count(all.begin(), all.begin() + static_cast<long>(offset), T(3)) == static_cast<long>(offset));
  CHECK(std::count(part.end(), all.end(), T(3)) == static_cast<long>(all.size() - offset - count));
  world.barrier();  // the next values are written when all have looked
}

/// Limits what this process may have while it lives: the size of its files, or its address space.
struct Limit {
  template <class Resource> Limit(Resource of, rlim_t bytes) : set([=](const rlimit& l) { setrlimit(of, &l); }) {
    getrlimit(of, &before);
    set({bytes, before.rlim_max});
  }
  ~Limit() {
    set(before);
    std::signal(SIGXFSZ, handler);
  }
  std::function<void(const rlimit&)> set;
  void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
};
/// Bytes of this process's address space.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}
}  // namespace

TEST_CASE("sums in shared pages have the bits of every other way", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD, options()};
  const sk::comm::SharedPages pages = world.share(std::size_t{1} << 20);
  REQUIRE(static_cast<bool>(pages) == (world.size() > 1));
  if (world.size() == 1) return;
  CHECK(pages.bytes() == std::size_t{1} << 20);
  CHECK(is_shared(pages.span<float>().data()));
  CHECK(std::count(pages.span<float>().begin(), pages.span<float>().end(), 0.0f) == 1 << 18);
  world.barrier();
  sums_of<float>(world, pages, 0, std::size_t{1} << 18, sk::Sum{});
  sums_of<float>(world, pages, 16, 40000, sk::Mean{});
  sums_of<float>(world, pages, 3, 5001, sk::Sum{});  // begins and ends within cache lines
  sums_of<float>(world, pages, 0, 100, sk::Sum{});   // so short that it is copied
  sums_of<double>(world, pages, 1, 30011, collectives::Weighted{});
  sums_of<std::int64_t>(world, pages, 0, 20000, sk::Max{});
  sums_of<std::int8_t>(world, pages, 7, 100003, sk::Min{});
}

TEST_CASE("the same bits in shared pages, through slots, over messages and threads", "[distributed]") {
  sk::CommOptions by_messages = options();
  by_messages.shared_memory = false;
  sk::MpiComm near{MPI_COMM_WORLD, options()}, far{MPI_COMM_WORLD, by_messages};
  const sk::comm::SharedPages pages = near.share(160000);
  CHECK_FALSE(far.share(160000));
  if (near.size() == 1) return;
  std::vector<float> a = collectives::values<float>(near.rank(), 40000), b = a, c;
  const std::span<float> shared = pages.span<float>();
  std::copy(a.begin(), a.end(), shared.begin());
  near.all_reduce(shared, sk::Mean{});
  near.all_reduce(a, sk::Mean{});
  far.all_reduce(b, sk::Mean{});
  sk::spawn(near.size(), [&](sk::ThreadComm& threads) {
    std::vector<float> mine = collectives::values<float>(threads.rank(), 40000);
    threads.all_reduce(mine, sk::Mean{});
    if (threads.rank() == 0) c = mine;
  });
  CHECK(same_bits({shared.begin(), shared.end()}, a));
  CHECK(same_bits({shared.begin(), shared.end()}, b));
  CHECK(same_bits({shared.begin(), shared.end()}, c));
}

TEST_CASE("calls in shared pages and others follow each other, several in flight", "[distributed]") {
  sk::MpiComm inner{MPI_COMM_WORLD, options()};
  sk::Counted world{inner};  // hands on what it wraps has
  const sk::comm::SharedPages pages = world.share(1 << 20), more = world.share(65536);
  if (world.size() == 1) return;
  const auto n = static_cast<float>(world.size());
  const std::span<float> all = pages.span<float>();
  std::vector<float> foreign(50000), gathered(foreign.size() * static_cast<std::size_t>(world.size()));
  for (int turn = 0; turn < 20; ++turn) {
    std::fill(all.begin(), all.end(), 1.0f);
    std::fill(foreign.begin(), foreign.end(), 2.0f);
    std::fill(more.span<float>().begin(), more.span<float>().end(), 3.0f);
    auto a = world.start_all_reduce(all.first(100000));
    auto b = world.start_all_reduce(foreign);
    auto c = world.start_all_reduce(all.subspan(100000, 150000));
    auto d = world.start_all_reduce(more.span<float>());
    auto e = world.start_broadcast(all.last(1000), turn % world.size());
    if (turn % 2) c.wait();
    e.wait(), d.wait(), c.wait(), b.wait(), a.wait();
    REQUIRE(std::count(all.begin(), all.begin() + 250000, n) == 250000);
    REQUIRE(std::count(foreign.begin(), foreign.end(), 2 * n) == 50000);
    REQUIRE(std::count(more.span<float>().begin(), more.span<float>().end(), 3 * n) == 16384);
    world.all_gather(foreign, gathered);
    REQUIRE(gathered.back() == 2 * n);
  }
}

TEST_CASE("a span that does not lie in the pages as those of the others is named, and nothing is added", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD, options()};
  if (world.size() == 1) return;
  const sk::comm::SharedPages pages = world.share(1 << 20), more = world.share(1 << 20);
  std::vector<float> foreign(10000, 7.0f);
  const std::span<float> all = pages.span<float>();
  const int what = GENERATE(0, 1, 2);
  std::span<float> given = all.first(10000);
  if (world.rank() == 1) given = what == 0 ? std::span<float>(foreign) : what == 1 ? all.subspan(16, 10000) : more.span<float>();
  given = given.first(10000);
  std::fill(given.begin(), given.end(), 7.0f);
  const std::string text = thrown([&] { world.all_reduce(given); });
  CHECK_THAT(text, Contains("differs between ranks: rank") &&
                       Contains("all_reduce(Sum) of 10000 float in shared pages (place ") &&
                       Contains("; rank 1: all_reduce(Sum) of 10000 float") &&
                       Contains("Every rank must make the same calls in the same order"));
  CHECK(std::count(given.begin(), given.end(), 7.0f) == 10000);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a rank that does not come to a sum in shared pages is named, and cannot write there later", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD, options()};
  if (world.size() == 1) return;
  const sk::comm::SharedPages pages = world.share(1 << 20);
  const std::span<float> all = pages.span<float>();
  std::fill(all.begin(), all.end(), static_cast<float>(world.rank() + 5));
  world.barrier();
  MPI_Barrier(MPI_COMM_WORLD);
  world.set_deadline(1);
  if (world.rank() == 1) MPI_Barrier(MPI_COMM_WORLD);  // when the others have given up, however long they take
  const std::string text = thrown([&] { world.all_reduce(all); });
  if (world.rank() != 1) MPI_Barrier(MPI_COMM_WORLD);
  // On a loaded machine others may be late beside it.
  CHECK_THAT(text, Contains("all_reduce(Sum) of 262144 float in shared pages (place ") &&
                       Catch::Matchers::Matches(".*: ranks? ([0-9]+, )*1(, [0-9]+)* did not arrive within 1 s"));
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(std::count(all.begin(), all.end(), static_cast<float>(world.rank() + 5)) == 262144);  // as they were
  CHECK_FALSE(is_shared(all.data()));
  all.front() = 11;
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("where one rank has no room for shared pages none has any, and all goes on", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD, options()};
  const bool last = world.rank() == world.size() - 1;
  std::vector<float> data(50000, 1.0f);
  SECTION("the last rank has no room") {
    std::optional<Limit> limit;
    if (last) limit.emplace(RLIMIT_AS, address_space() + (8 << 20));
    CHECK_FALSE(world.share(16 << 20));
  }
  SECTION("the first rank cannot make them") {
    std::optional<Limit> limit;
    if (world.rank() == 0) limit.emplace(RLIMIT_FSIZE, 1 << 20);
    CHECK_FALSE(world.share(4 << 20));
  }
  SECTION("more than any machine has") { CHECK_FALSE(world.share(std::size_t{1} << 60)); }
  SECTION("more than the counter has") { CHECK_FALSE(world.share(~std::size_t{0})); }
  SECTION("nothing") { CHECK_FALSE(world.share(0)); }
  SECTION("other sizes") {
    if (world.size() > 1) CHECK_FALSE(world.share(last ? 4096 : 8192));
  }
  SECTION("the option of one rank") {
    sk::CommOptions o = options();
    o.shared_pages = !last;
    sk::MpiComm other{MPI_COMM_WORLD, o};
    CHECK_FALSE(other.share(4096));
  }
  world.all_reduce(data);
  CHECK(std::count(data.begin(), data.end(), static_cast<float>(world.size())) == 50000);
  CHECK(static_cast<bool>(world.share(4096)) == (world.size() > 1));
  CHECK(names_left() == 0);
}

TEST_CASE("shared pages have no name, outlive their communicator, and end without the other ranks", "[distributed]") {
  std::optional<sk::MpiComm> world(std::in_place, MPI_COMM_WORLD, options());
  const int rank = world->rank(), size = world->size();
  sk::comm::SharedPages first = world->share(1 << 20), second = world->share(1 << 20);
  CHECK(names_left() == 0);
  if (size == 1) return;
  const float* const released = first.span<float>().data();
  if (rank == 0) {
    first = {};
    CHECK_FALSE(is_shared(released));
  }
  const std::span<float> all = second.span<float>();
  std::fill(all.begin(), all.end(), 1.0f);
  world->all_reduce(all);  // although the others have the first pages still
  first = {};
  const sk::comm::SharedPages third = world->share(1 << 20);
  REQUIRE(static_cast<bool>(third));
  std::fill(third.span<float>().begin(), third.span<float>().end(), 2.0f);
  world->all_reduce(third.span<float>());
  world.reset();
  CHECK(all.back() == static_cast<float>(size));
  CHECK(third.span<float>().back() == static_cast<float>(2 * size));
}

TEST_CASE("DataParallel has the gradients in shared pages, with the same bits", "[distributed]") {
  namespace cases = data_parallel_cases;
  namespace nn = sk::nn;
  sk::CommOptions apart = options();
  apart.shared_pages = false;
  sk::MpiComm with{MPI_COMM_WORLD, options()}, without{MPI_COMM_WORLD, apart};
  // Wide enough for buckets that are summed where they are.
  using Net = nn::Sequential<nn::Linear<300>, nn::Relu, nn::Linear<40>, nn::Relu, nn::Linear<3>>;
  using Model = sk::Model<Net, sk::Shape<4>>;
  const cases::Points points;
  const auto train = [&](const auto& policy, bool gradients, bool shared) {
    auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
    Model model{sk::Seed{3}};
    if (gradients) (void)model.gradients();
    sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f, .momentum = 0.9f}, policy};
    CHECK(is_shared(model.gradient_arena().data) == shared);
    CHECK(static_cast<const Model&>(model).gradients().data == model.gradient_arena().data);
    trainer.fit(data, {.epochs = 2, .batch = 20, .seed = sk::Seed{11}, .progress = false, .threads = 2});
    return std::vector<float>(model.parameters().begin(), model.parameters().end());
  };
  const bool several = with.size() > 1;
  using sk::parallel::DataParallel;
  const std::vector<float> own = train(DataParallel{without}, false, false);
  CHECK(same_bits(train(DataParallel{with}, false, several), own));
  CHECK(same_bits(train(DataParallel{with, {.bucket_bytes = 20000}}, false, several), own));
  CHECK(same_bits(train(sk::parallel::Compose{DataParallel{with}}, false, several), own));
  CHECK(same_bits(train(DataParallel{with}, true, false), own));              // they were there already
  CHECK(same_bits(train(DataParallel{with}, with.rank() == 0, false), own));  // on one rank alone
  CHECK(names_left() == 0);
}
