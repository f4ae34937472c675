// SPDX-License-Identifier: Apache-2.0
// skein/simulate.hpp has, beside skein.hpp alone, all that a training is tried with: a simulated network, a slow one, a slow
// rank.
#include <catch2/catch.hpp>

#include <cstddef>
#include <vector>

#include <skein/simulate.hpp>
#include <skein/skein.hpp>

namespace sk = skein;

namespace {
using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<4>>, sk::Shape<3>>;

/// The loss after two steps.
template <class Policy> double trained(const Policy& policy) {
  sk::Tensor<float, 2> x = sk::zeros<float>(8, 3), y = sk::zeros<float>(8, 4);
  for (long i = 0; i < 8; ++i) x(i, i % 3) = y(i, i % 4) = static_cast<float>(i + 1) / 8;
  const auto data = sk::data::from_tensors(x, y);
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, policy};
  trainer.fit(data, {.epochs = 1, .batch = 4, .progress = false, .threads = 1});
  return trainer.evaluate(data).loss;
}
}  // namespace

TEST_CASE("one include has all that a training is tried with", "[simulate]") {
  using sk::parallel::DataParallel;
  const double alone = trained(sk::parallel::SingleProcess{});
  std::vector<double> simulated(2), slowed(2);
  const sk::SimReport report = sk::simulate(2, {}, [&](sk::SimComm& world) {
    simulated[static_cast<std::size_t>(world.rank())] =
        trained(sk::parallel::Simulated{DataParallel{world}, world, sk::parallel::compute_times(1e-3)});
  });
  for (const double loss : simulated) CHECK(loss == Approx(alone));
  CHECK(report.seconds() >= 2 * 1e-3);
  CHECK(alone > 0);
  sk::SlowNetwork network({{1e-4, 0}, {1e-4, 0}, 0, 0});
  sk::spawn(2, [&](sk::ThreadComm& world) {
    sk::Delayed slow{world, network};
    const sk::parallel::Slowed policy{DataParallel{slow}, {.rank = 1, .seconds = 1e-3}};
    slowed[static_cast<std::size_t>(world.rank())] = trained(policy);
  });
  for (const double loss : slowed) CHECK(loss == Approx(alone));
}
