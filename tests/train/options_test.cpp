// SPDX-License-Identifier: Apache-2.0
// Options of fit that would do nothing, or nothing of what was meant; and whom they make fetch samples.
#include <catch2/catch.hpp>

#include <mutex>
#include <set>
#include <thread>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

namespace {
using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<2>>, sk::Shape<3>>;

/// Brings a sample at a time, and remembers the threads that asked.
struct Watched {
  mutable std::mutex mutex{};
  mutable std::set<std::thread::id> threads{};

  std::int64_t size() const { return 40; }
  sk::Extents sample_extents() const { return {1, {3}}; }
  sk::data::Target target() const { return sk::data::Target::labels(2); }
  void read(std::int64_t i, std::span<float> x, std::int32_t& label) const {
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = sk::random_uniform(1, static_cast<std::uint64_t>(i), j);
    label = x[0] > 0.5f;
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  }
  bool asked_by(std::thread::id thread) const { return threads.contains(thread); }
};
}  // namespace

TEST_CASE("fit refuses options that do nothing", "[train]") {
  const Watched data;
  Model model;
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK_THROWS_WITH(trainer.fit(data, {.epochs = 0, .batch = 8}),
                    "fit: .epochs is 0: give 1 or more passes over the training data");
  CHECK_THROWS_WITH(trainer.fit(data, {.epochs = -1, .batch = 8}), Catch::Contains("fit: .epochs is -1"));
  CHECK_THROWS_WITH(trainer.fit(data, {.epochs = 2, .batch = 8, .schedule = sk::optim::warmup(11), .progress = false}),
                    Catch::Contains("warmup: 11 steps, and the fit has 10"));
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 8, .callbacks = {sk::train::EarlyStopping{.patience = -1}}, .progress = false}),
                    Catch::Contains("EarlyStopping: .patience is -1"));
  CHECK(data.threads.empty());  // before a sample is read
}

TEST_CASE("Threads fetch the validation set as they fetch the training set", "[train]") {
  const Watched data, validation;
  Model model{sk::Seed{1}}, same{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  const auto history = trainer.fit(data, {.epochs = 2,
                                          .batch = 8,
                                          .validate = validation,
                                          .progress = false,
                                          .threads = 1,
                                          .loader = {.prefetch = sk::data::Prefetch::on, .prefetch_threads = 2}});
  CHECK_FALSE(data.asked_by(std::this_thread::get_id()));
  CHECK_FALSE(validation.asked_by(std::this_thread::get_id()));
  CHECK_FALSE(validation.threads.empty());

  sk::Trainer plain{same, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  const Watched again;
  const auto expected = plain.fit(data, {.epochs = 2,
                                         .batch = 8,
                                         .validate = again,
                                         .progress = false,
                                         .threads = 1,
                                         .loader = {.prefetch = sk::data::Prefetch::off}});
  CHECK(again.threads == std::set{std::this_thread::get_id()});
  CHECK(history.back().validation.loss == expected.back().validation.loss);
}
