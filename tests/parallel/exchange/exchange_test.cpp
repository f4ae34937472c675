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
