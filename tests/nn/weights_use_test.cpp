// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/weights_use.hpp>

#include <atomic>
#include <optional>
#include <thread>

#include <catch2/catch.hpp>
#include "../support/thrown.hpp"

namespace sk = skein;
using Use = sk::nn::WeightsUse;

TEST_CASE("many threads read weights, one trains them, and neither begins beside the other", "[nn]") {
  Use use;
  const auto in_another_thread = [](auto act) {
    std::string said;
    std::thread([&] { said = support::thrown<sk::ArgumentError>(act); }).join();
    return said;
  };
  const auto reads = [&] { const Use::Pass pass(use); };
  const auto trains = [&] { const Use::Training training(use); };
  {
    const Use::Pass pass(use);
    CHECK(in_another_thread(reads).empty());
  }
  {
    const Use::Training training(use);
    reads(), trains();  // in a callback
    CHECK(in_another_thread(reads).find("another thread trains this model just now") != std::string::npos);
    CHECK(in_another_thread(trains).find("another thread trains this model") != std::string::npos);
  }
  CHECK(in_another_thread(trains).empty());

  std::optional<Use::Pass> pass(std::in_place, use);  // a training waits for it
  std::atomic<bool> begun = false;
  std::thread trainer([&] {
    const Use::Training training(use);
    begun = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(begun);
  pass.reset();
  trainer.join();
  CHECK(begun);
}
