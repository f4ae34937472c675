// SPDX-License-Identifier: Apache-2.0
// An exchange of one's own, and near misses of one.
#include "../../support/own_exchange_cases.hpp"

#include <skein/comm/thread/spawn.hpp>

namespace sp = skein::parallel;

namespace {
template <class E> constexpr bool is_exchange = sp::GradientExchange<E, sk::ThreadComm, float, sk::Cpu>;
template <class Comm, class Scalar, class Device> struct Whole : sp::ExchangeOn<Comm, Scalar, Device> {
  using sp::ExchangeOn<Comm, Scalar, Device>::ExchangeOn;
  void begin(std::size_t) {}
  bool poll(std::size_t) { return true; }
  void wait(std::size_t) {}
};
struct Sound {
  static constexpr std::string_view name = "sound";
  template <class C, class S, class D> using On = Whole<C, S, D>;
};
struct WithoutName {
  template <class C, class S, class D> using On = Whole<C, S, D>;
};
struct WithoutOn {
  static constexpr std::string_view name = "without";
};
struct WithoutBase {
  static constexpr std::string_view name = "without a base";
  template <class C, class S, class D> struct On {
    void begin(std::size_t) {}
    bool poll(std::size_t) { return true; }
    void wait(std::size_t) {}
  };
};
struct PollsNothing {
  static constexpr std::string_view name = "polls nothing";
  template <class C, class S, class D> struct On : Whole<C, S, D> {
    void poll(std::size_t) {}
  };
};
struct NeverWaits {
  static constexpr std::string_view name = "never waits";
  template <class C, class S, class D> struct On : Whole<C, S, D> {
    void wait() {}
  };
};
}  // namespace
static_assert(is_exchange<Sound> && is_exchange<InTwoHalves> && is_exchange<sp::AllReduceExchange>);
static_assert(!is_exchange<WithoutName> && !is_exchange<WithoutOn> && !is_exchange<WithoutBase>);
static_assert(!is_exchange<PollsNothing> && !is_exchange<NeverWaits>);

TEST_CASE("an exchange of one's own trains as the all-reduce does", "[parallel]") {
  const int ranks = GENERATE(1, 2, 3, 4);
  CAPTURE(ranks);
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) { own_exchange_cases::agrees_with_all_reduce(world); }));
}

namespace {
/// The all-reduce, which counts the steps of a training.
struct CountsSteps {
  static constexpr std::string_view name = "all-reduce, counted";
  template <class C, class S, class D> struct On : sp::AllReduceExchange::On<C, S, D> {
    using Base = sp::AllReduceExchange::On<C, S, D>;
    using Base::Base;
    static constexpr bool capturable = false, keeps_state = true;
    std::int64_t steps = 0;
    void backward_ended() { ++steps; }
    static std::string saved_as() { return "CountsSteps"; }
    template <class Archive> void serialize(Archive& archive, unsigned) { archive& steps; }
  };
};
/// The same, which begins anew where a file has nothing of it.
struct BeginsAnew {
  static constexpr std::string_view name = CountsSteps::name;
  template <class C, class S, class D> struct On : CountsSteps::On<C, S, D> {
    using Base = CountsSteps::On<C, S, D>;
    using Base::Base;
    void forget() { this->steps = 0; }
  };
};
/// A training of an epoch that loads `file` then; the steps that its exchange has counted.
template <class Policy> std::int64_t counted_after(const Policy& policy, const std::string& file) {
  sharded_cases::Training training(policy);
  training.epoch();
  const auto& exchange = training.trainer.train_step().policy_state().exchange();
  RANK_CHECK(exchange.steps == training.trainer.train_step().steps());
  training.trainer.load(file);
  return exchange.steps;
}
}  // namespace
static_assert(is_exchange<CountsSteps> && is_exchange<BeginsAnew>);

TEST_CASE("what an own exchange keeps is saved and loaded, and forgotten where a file has none", "[parallel]") {
  const support::TemporaryFolder folder;
  CHECK_NOTHROW(sk::spawn(2, [&](sk::ThreadComm& world) {
    sharded_cases::Training counted(sp::DataParallel{world, sp::ExchangeBy<CountsSteps>{}});
    sharded_cases::Training plain(sp::DataParallel{world});
    counted.epoch(2);
    counted.trainer.save(folder / "counted");
    plain.epoch();
    plain.trainer.save(folder / "plain");
    const std::int64_t epoch = plain.trainer.train_step().steps();
    RANK_CHECK(epoch > 0);
    RANK_CHECK(counted_after(sp::DataParallel{world, sp::ExchangeBy<CountsSteps>{}}, folder / "counted") == 2 * epoch);
    RANK_CHECK(counted_after(sp::DataParallel{world, sp::ExchangeBy<CountsSteps>{}}, folder / "plain") == epoch);
    RANK_CHECK(counted_after(sp::DataParallel{world, sp::ExchangeBy<BeginsAnew>{}}, folder / "plain") == 0);
    world.barrier();
  }));
}

TEST_CASE("ranks that exchange by different algorithms refuse to start", "[parallel]") {
  std::string message;
  try {
    sk::spawn(2, [](sk::ThreadComm& world) {
      if (world.rank() == 0) (void)sharded_cases::train(sp::DataParallel{world});
      else (void)sharded_cases::train(sp::DataParallel{world, sp::ExchangeBy<InTwoHalves>{}});
    });
  } catch (const sk::CommError& e) { message = e.what(); }
  CHECK_THAT(message,
             Catch::Matchers::Contains("the models of DataParallel differ between ranks: the exchange of DataParallel is "));
}
