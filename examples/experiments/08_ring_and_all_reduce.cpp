// SPDX-License-Identifier: Apache-2.0
// Messages between ranks, each with its result asserted: a value goes round a ring, an all-reduce, one message from rank 0 to
// rank 1, a sum that is zero on all ranks. As processes under `mpirun -n N`, and as threads of this program (--threads N),
// which needs no launcher.
// ctest: --threads 3
// ctest on 3 ranks:
// ctest on 2 ranks:
// ctest expects: all as it should be
#include <cstdio>
#include <string>
#include <vector>

#include <skein/mpi.hpp>
#include <skein/skein.hpp>
namespace sk = skein;

namespace {

struct Options {
  int threads = 0;

  void flags(sk::Flags& f) {
    f.about("A token round a ring of ranks, and sums over them");
    f("threads", threads, "so many threads of this process; 0: the processes of mpirun").within(0, 1024);
  }
};

/// Throws, so that every rank ends and says why.
void expect(bool holds, const std::string& what) {
  if (!holds) throw sk::Error("08_ring_and_all_reduce: " + what + " is not as it should be");
}

/// Rank 0 sends 0; each adds 1 to what it gets and sends it on; it comes back as the number of ranks.
template <class Comm> float ring(Comm& world) {
  const int next = (world.rank() + 1) % world.size(), before = (world.rank() + world.size() - 1) % world.size();
  std::vector<float> token(1);
  if (world.rank() != 0) world.recv(token, before);
  token[0] += 1;
  const float passed = token[0];
  auto sent = world.isend(token, next);
  if (world.rank() == 0) {
    std::vector<float> back(1);
    world.recv(back, before);
    expect(back[0] == static_cast<float>(world.size()), "what came round the ring");
  }
  sent.wait();
  return passed;
}

template <class Comm> void run(Comm& world) {
  const int r = world.rank(), n = world.size();

  const float passed = ring(world);
  expect(passed == static_cast<float>(r + 1), "the ring");

  std::vector<double> sum{r + 1.0};
  world.all_reduce(sum);
  expect(sum[0] == n * (n + 1) / 2.0, "the all-reduce");

  std::vector<float> pair(2);
  if (r == 0) world.send(std::vector<float>{1, -1}, n > 1 ? 1 : 0);
  if (r == (n > 1 ? 1 : 0)) {
    world.recv(pair, 0);
    expect(pair == std::vector<float>{1, -1}, "the message of rank 0");
  }

  const double zero = world.all_reduce(r == n - 1 ? -(n - 1) * n / 2.0 : r + 1.0);  // 1 + 2 - 3 on three ranks
  expect(zero == 0, "the sum that is zero");

  for (const std::string& line :
       world.all_gather("rank " + std::to_string(r) + ": ring " + std::to_string(static_cast<int>(passed)) + ", all-reduce " +
                        std::to_string(static_cast<int>(sum[0])) + ", zero " + std::to_string(static_cast<int>(zero))))
    if (r == 0) std::printf("%s\n", line.c_str());
  if (r == 0) std::printf("%d ranks (%s): all as it should be\n", n, std::string(Comm::name).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    if (o.threads > 0) {
      sk::spawn(o.threads, [](sk::ThreadComm& world) { run(world); });
    } else {
      sk::MpiComm world{argc, argv};
      run(world);
    }
  });
}
