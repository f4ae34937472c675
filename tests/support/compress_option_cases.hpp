// SPDX-License-Identifier: Apache-2.0
// What Compress and Algorithm must do on any communicator of the host: written once, run over threads and over MPI. Failures
// throw.
#pragma once
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/comm/compress/error_feedback.hpp>
#include <skein/comm/compress/half_codec.hpp>
#include <skein/comm/compress/int8_codec.hpp>
#include <skein/comm/compress/power_sgd.hpp>
#include <skein/comm/compress/top_k.hpp>
#include <skein/comm/counted.hpp>
#include <skein/core/shape.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/algorithm.hpp>
#include <skein/parallel/data/compress.hpp>
#include <skein/train/trainer.hpp>

#include "rank_check.hpp"

namespace compress_option_cases {
namespace sk = skein;
namespace comm = skein::comm;
using namespace skein::parallel;

/// Two layers as a model has them: weights (7, 9) and (9, 20), whose rows are padded, and biases. Behind them the sums of the
/// batch.
struct Arena {
  std::vector<sk::plan::Entry> entries;
  std::vector<sk::plan::LayerNode> layers;
  long stored = 0;
  std::vector<float> parameters, gradients;
  Arena() {
    const sk::Extents shapes[] = {{2, {7, 9}}, {1, {9}}, {2, {9, 20}}, {1, {20}}};
    for (int i = 0; i < 4; ++i) {
      sk::plan::Entry e;
      e.offset = stored;
      e.extents = shapes[i];
      e.stored = sk::stored_count(shapes[i]);
      e.layer = i / 2;
      if (i % 2 == 0) {
        layers.emplace_back();
        layers.back().parameter = stored;
      }
      layers.back().parameters += e.stored;
      stored += e.stored;
      entries.push_back(e);
    }
    parameters.resize(static_cast<std::size_t>(stored));
    gradients.resize(static_cast<std::size_t>(stored) + 16);
  }
  sk::parallel::Replica<float, sk::Cpu> replica() {
    sk::parallel::Replica<float, sk::Cpu> r;
    r.parameters = {parameters.data(), parameters.size()};
    r.gradients = {gradients.data(), gradients.size()};
    r.layers = layers;
    r.entries = entries;
    r.stored = stored;
    return r;
  }
  /// Rank r's gradients of a step: logical values, and three sums. `gaps` is what stands between.
  void fill(int rank, int step, float gaps) {
    std::fill(gradients.begin(), gradients.end(), gaps);
    for (std::size_t i = static_cast<std::size_t>(stored); i < gradients.size(); ++i) gradients[i] = 0;
    sk::plan::for_each_run(entries, {0, stored}, [&](std::size_t, sk::plan::Range run) {
      for (long i = run.begin; i < run.end; ++i)
        gradients[static_cast<std::size_t>(i)] = std::sin(0.37f * static_cast<float>(i) + 1.3f * static_cast<float>(rank + step));
    });
    for (int k = 0; k < 3; ++k)
      gradients[static_cast<std::size_t>(stored + k)] = 1000.0f + static_cast<float>(rank + k);  // bf16 would lose it
  }
};

template <class Comm, class... Options> using PolicyStateOf = DataParallelStateOf<Comm, float, sk::Cpu, Options...>;

template <class PolicyState> void step(PolicyState& policy_state, Arena& arena) {
  const long end = static_cast<long>(arena.gradients.size()), middle = arena.layers[1].parameter;
  policy_state.gradient_ready(middle, end);
  policy_state.gradient_ready(middle, middle);  // a chance to make progress
  policy_state.gradient_ready(0, middle);
  policy_state.finish_gradients();
}

/// A rank's state that has made the first step.
template <class PolicyState> struct AfterAStep {
  template <class Comm> explicit AfterAStep(Comm& comm) : policy_state(comm, DataParallelOptions{}, arena.replica()) {
    policy_state.start();
    arena.fill(comm.rank(), 0, 0);
    step(policy_state, arena);
  }
  Arena arena;
  PolicyState policy_state;
};

/// Sums are those of what each rank had, to `tolerance` of the largest; the sums of the batch are exact; gaps are not touched;
/// all ranks have the same bits; and what has gone through the communicator is what the plan says, to the byte.
template <class... Options, class World> void exchanges(World& world, double tolerance, int steps = 1) {
  using Comm = sk::Counted<World>;
  Comm counted(world);
  for (const long bucket : {1L, 1L << 20}) {
    Arena arena;
    PolicyStateOf<Comm, Options...> policy_state(counted, DataParallelOptions{.bucket_bytes = bucket}, arena.replica());
    policy_state.start();
    const comm::Counts before = counted.counts();
    const bool alone = world.size() == 1;
    const float gaps = std::same_as<typename PolicyStateOf<Comm, Options...>::exchange_type::compressor, detail::Uncompressed>
                           ? 0.0f
                           : 7.0f;  // no compressor sees them
    std::vector<double> expected(arena.gradients.size()), got(arena.gradients.size());
    for (int s = 0; s < steps; ++s) {
      for (int r = 0; r < world.size(); ++r) {
        arena.fill(r, 0, r == 0 ? gaps : 0);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(arena.gradients[i]);
      }
      arena.fill(world.rank(), 0, gaps);
      if (alone) RANK_CHECK(!policy_state.synchronizes_gradients());
      else step(policy_state, arena);
      for (std::size_t i = 0; i < got.size(); ++i) got[i] += static_cast<double>(arena.gradients[i]);
    }
    const comm::Counts given = counted.counts() - before;
    RANK_CHECK(given == steps * policy_state.exchange().planned());
    if constexpr (std::same_as<typename PolicyStateOf<Comm, Options...>::exchange_type::algorithm, Ring>)
      RANK_CHECK((alone || given.messages == 2 * (world.size() - 1) * static_cast<long>(policy_state.trace().size())));
    RANK_CHECK(given == policy_state.exchange().counts());
    RANK_CHECK((alone || given.payload + given.bytes > 0));
    for (std::size_t i = 0; i < got.size(); ++i)
      RANK_CHECK(std::abs(got[i] - expected[i]) <=
                 (static_cast<long>(i) < arena.stored ? tolerance * world.size() * steps : 0.0));
    std::vector<float> first = arena.gradients;
    world.broadcast(first, 0);
    RANK_CHECK(first == arena.gradients);
  }
}

using Half = Compress<comm::HalfCodec<sk::bf16>>;

/// A user's own: every third value in each of three rounds, exact.
class Thirds {
 public:
  static constexpr std::string_view name = "thirds";
  static constexpr bool linear = true;
  static constexpr int rounds = 3;
  using Element = float;
  std::size_t elements(std::size_t n, int round) const { return (n + 2 - static_cast<std::size_t>(round)) / 3; }
  void encode(std::span<const float> values, std::span<float> wire, int round) const {
    for (std::size_t i = 0; i < wire.size(); ++i) wire[i] = values[3 * i + static_cast<std::size_t>(round)];
  }
  void take(std::span<const float> wire, int round) { taken_[static_cast<std::size_t>(round)].assign(wire.begin(), wire.end()); }
  void decode(std::span<const float> wire, std::span<float> values) const {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 2 ? wire[i / 3] : taken_[i % 3][i / 3];
  }

 private:
  std::vector<float> taken_[3];
};

/// A user's own that saves nothing of any matrix, in one round: all parameters travel as they are.
struct AsTheyAre {
  static constexpr std::string_view name = "as they are";
  static constexpr bool linear = true, by_matrix = true;
  static constexpr int rounds = 1;
  using Element = float;
  static AsTheyAre for_matrix(std::uint64_t, std::size_t) { return {}; }
  std::size_t elements(std::size_t n, int) const { return n; }
  void encode(std::span<const float>, std::span<float> wire, int) const { std::fill(wire.begin(), wire.end(), 1e9f); }
  void decode(std::span<const float>, std::span<float> values) const { std::fill(values.begin(), values.end(), 1e9f); }
};

template <class World> void wires(World& world) {
  exchanges<Half>(world, 0.02);
  exchanges<Compress<comm::HalfCodec<sk::fp16>>>(world, 0.003);
  exchanges<Compress<comm::Int8Codec<64>>>(world, 0.006);
  // What error feedback has kept is small beside many steps: of equal gradients all arrives in the end.
  exchanges<Compress<comm::ErrorFeedback<comm::TopK<4>>>>(world, 0.15, 40);
  exchanges<Compress<comm::ErrorFeedback<comm::PowerSgd<2>>>>(world, 0.1, 40);
  exchanges<Compress<Thirds>>(world, 1e-6, 2);
  exchanges<Compress<AsTheyAre>>(world, 1e-6);
}

template <class World> void algorithms(World& world) {
  exchanges<Algorithm<Ring>>(world, 1e-6);
  exchanges<Algorithm<RecursiveDoubling>>(world, 1e-6);
  exchanges<Algorithm<Torus<>>>(world, 1e-6);
  exchanges<Algorithm<Nodes<2>>>(world, 1e-6);
  exchanges<Algorithm<BySize>>(world, 1e-6);
  exchanges<Half, Algorithm<Ring>>(world, 0.02);  // in either order
  exchanges<Algorithm<Ring>, Half>(world, 0.02);
  exchanges<Compress<comm::ErrorFeedback<comm::PowerSgd<2>>>, Algorithm<RecursiveDoubling>>(world, 0.1, 40);
  exchanges<Compress<Thirds>, Algorithm<RecursiveDoubling>>(world, 1e-6, 2);
}

/// A curve to fit, by a network whose rows are padded. Returns the loss of each epoch; saves after the second to `save`, or
/// begins with what was saved there. Checks that the ranks stay one, and counts what went through the communicator.
struct Fit {
  std::vector<double> losses;
  std::vector<float> parameters;
};
template <class Policy> Fit fit(const Policy& policy, int epochs, const std::string& save = {}, const std::string& load = {}) {
  std::vector<float> x(192), y(192);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i) / 96.0f - 1.0f;
    y[i] = std::sin(3 * x[i]);
  }
  sk::Model<sk::nn::Sequential<sk::nn::Linear<20>, sk::nn::Tanh, sk::nn::Linear<20>, sk::nn::Tanh, sk::nn::Linear<1>>,
            sk::Shape<1>>
      model{sk::Seed{5}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f, .momentum = 0.5f}, policy};
  if (!load.empty()) trainer.load(load);
  Fit result;
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {1}}, y);
  for (int e = 0; e < epochs; ++e) {
    result.losses.push_back(
        trainer
            .fit(data,
                 {.epochs = e == 0 && !load.empty() ? 2 : 1, .batch = 24, .seed = sk::Seed{9}, .progress = false, .threads = 1})
            .back()
            .training.loss);
    if (e == 1 && !save.empty()) trainer.save(save);
  }
  if constexpr (requires { trainer.train_step().policy_state().exchange().planned(); }) {
    const auto& policy_state = trainer.train_step().policy_state();
    RANK_CHECK(policy_state.exchange().counts() == 8 * epochs * policy_state.exchange().planned());
  }
  result.parameters.assign(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end());
  return result;
}

/// Trains to the loss that the serial run comes to (0.011), the same bits on all ranks; and goes on after a load as if nothing
/// had been.
template <class... Options, class World> void trains(World& world, const std::string& file) {
  const Fit with = fit(DataParallel{world, Options{}...}, 60);
  RANK_CHECK(with.losses.back() < 0.018);
  std::vector<float> first = with.parameters;
  world.broadcast(first, 0);
  RANK_CHECK(first == with.parameters);
  const Fit whole = fit(DataParallel{world, Options{}...}, 5, file), rest = fit(DataParallel{world, Options{}...}, 3, {}, file);
  RANK_CHECK(rest.parameters == whole.parameters);
  world.barrier();
}

}  // namespace compress_option_cases
