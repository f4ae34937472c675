// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/any_comm.hpp"

#include <catch2/catch.hpp>

#include <type_traits>
#include <vector>

#include "skein/comm/counted.hpp"
#include "skein/comm/sim/sim_comm.hpp"
#include "skein/skein.hpp"

namespace sk = skein;
using namespace sk::comm;
using Catch::Matchers::Contains;

static_assert((sk::assert_communicator<AnyComm>(), true));
static_assert(Erasable<sk::ThreadComm> && Erasable<sk::SelfComm> && Erasable<sk::Counted<sk::ThreadComm>>);
static_assert(!Erasable<sk::SimComm>, "which has a clock of its own");

namespace {
using Model = sk::Model<sk::nn::Linear<2>, sk::Shape<3>>;
template <class Comm, class... Options> using StepOver =
    typename sk::Trainer<Model, sk::nn::Mse, sk::optim::Sgd, sk::parallel::DataParallel<Comm, Options...>>::TrainStep;
}  // namespace
static_assert(std::is_same_v<StepOver<sk::ThreadComm>, StepOver<sk::SelfComm>>,
              "a trainer's steps are the same code over any communicator");
static_assert(!std::is_same_v<StepOver<sk::ThreadComm>, StepOver<sk::SimComm>>);

TEST_CASE("AnyComm does what the communicator does that it was made of") {
  for (const int ranks : {1, 2, 3}) {
    CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) {
      sk::Counted counted(world);
      AnyComm any(counted);
      const int n = any.size(), r = any.rank();
      const bool same = r == world.rank() && n == world.size() && any.node_size() == world.node_size() && any.node_rank() == r &&
                        any.one_process() && any.deadline() == world.deadline() && !any.share(4096);
      std::vector<float> x(5, static_cast<float>(r + 1));
      any.all_reduce(x);
      const bool summed = x == std::vector<float>(5, static_cast<float>(n * (n + 1) / 2));
      auto request = any.start_all_reduce(x, sk::Max{});
      while (!request.poll()) any.progress();
      const std::vector<int> all = any.all_gather(10 * r);
      any.barrier();
      if (!(same && summed && all.size() == static_cast<std::size_t>(n) && all.back() == 10 * (n - 1)))
        throw sk::CommError("AnyComm differs from its communicator");
      if (counted.counts().collectives < 4) throw sk::CommError("the calls went past the communicator");
    }));
  }
}

TEST_CASE("fail() of AnyComm ends all ranks of its communicator") {
  CHECK_THROWS_WITH(sk::spawn(2,
                              [](sk::ThreadComm& world) {
                                AnyComm any(world);
                                if (any.rank() == 1) any.fail("no more");
                                any.barrier();
                              }),
                    Contains("no more"));
}
