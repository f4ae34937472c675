// SPDX-License-Identifier: Apache-2.0
// What a failure inside a step must do with any number of threads a rank: end the fit on every rank, with the exception that was
// thrown first. Each of these used to leave the other threads of its rank in a barrier for ever.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <skein/data/in_memory.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

#include "naive_layers.hpp"

namespace failure_cases {

namespace sk = skein;
namespace nn = skein::nn;

/// The identity, which throws forward where a value is not a number, and backward where one is huge: in the worker that has the
/// sample.
struct Trapped {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in, .saves_input = true}; }
  template <class In, class Frame> static void forward(Frame& f) {
    for (long b = 0; b < f.batch; ++b)
      if (std::isnan(f.x[b * sk::sample_pitch(In::extents)])) throw std::runtime_error("a layer throws forward");
    naive::Flatten::copy<In>(f.y, f.x, f.batch, sk::sample_pitch(In::extents), sk::sample_pitch(In::extents));
  }
  template <class In, class Frame> static void backward(Frame& f) {
    for (long b = 0; b < f.batch; ++b)
      if (std::abs(f.x[b * sk::sample_pitch(In::extents)]) > 1e2f) throw std::runtime_error("a layer throws backward");
    if (f.dx) naive::Flatten::copy<In>(f.dx, f.dy, f.batch, sk::sample_pitch(In::extents), sk::sample_pitch(In::extents));
  }
};

/// CrossEntropy that throws where an output is large.
struct ThrowingLoss : nn::CrossEntropy {
  template <class Scalar, class Device> nn::LossSums operator()(const nn::LossCall<Scalar, Device>& call) const {
    for (long b = 0; b < call.count; ++b)
      if (std::abs(call.outputs[b * call.output_pitch]) > 1e6f) throw std::runtime_error("the loss throws");
    return nn::CrossEntropy::operator()(call);
  }
};
constexpr float forward_throws = std::numeric_limits<float>::quiet_NaN(), backward_throws = 1e4f, loss_throws = 1e10f;

using Net = nn::Sequential<nn::Linear<24>, Trapped, naive::Linear<8, true>, nn::Relu, nn::Linear<4>>;
using Model = sk::Model<Net, sk::Shape<12>>;

struct Case {
  long samples = 64, batch = 32;
  int epochs = 2, threads = 1;
  bool wrong_label = false;
  float value = 0;                       ///< of every eighth sample: one that a layer or the loss throws at
  std::function<void()> stands_still{};  ///< before the second epoch
  float lr = 0.01f;
  std::uint64_t model_seed = 5;
  bool validate = false;
  void (*change)(sk::FitOptions&) = nullptr;  ///< of the other options
  float meddle = 0;                           ///< is added to a weight after the second step
};

struct Sleeper {
  std::function<void()> stands_still;
  void on_epoch_begin(int epoch, sk::train::FitControl&) const {
    if (epoch == 2) stands_still();
  }
};

/// A callback that changes a weight of this rank alone.
struct Meddler {
  Model* model;
  float by;
  void on_step_end(const sk::train::StepRecord& r, sk::train::FitControl&) {
    if (r.step != 2) return;
    const auto lease = model->modify();
    lease.data()[0] += by;
  }
};

/// A set of a user's that says four classes and serves labels of another: the library's own refuse to be made.
struct WrongLabels {
  sk::data::InMemory<float> set;
  std::int64_t size() const { return set.size(); }
  sk::Extents sample_extents() const { return set.sample_extents(); }
  sk::data::Target target() const { return set.target(); }
  void serve(sk::data::Indices indices, const sk::data::Destination<float>& to) const {
    sk::data::DatasetView(set).serve(indices, to);
    for (std::size_t i = 0; to.labels && i < indices.size(); ++i)
      if (indices[i] % 8 == 5) to.labels[i] = 7;
  }
};

/// One rank's fit.
template <class Policy> void fit(const Policy& policy, const Case& c, sk::Execution execution = sk::Execution::layer_wise) {
  std::vector<float> x(static_cast<std::size_t>(c.samples) * 12);
  std::vector<std::int32_t> y(static_cast<std::size_t>(c.samples));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(3, 0, i);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int32_t>(i % 4);
  for (std::size_t i = 5; c.value != 0 && i < y.size(); i += 8)  // some of every rank, and none that ranks compare
    std::fill(&x[12 * i], &x[12 * i] + 12, c.value);
  const auto right = sk::data::InMemory<float>({1, {12}}, std::move(x), std::move(y), 4, 1, sk::data::NonFinite::keep);
  const WrongLabels wrong{right};
  const sk::data::DatasetView data = c.wrong_label ? sk::data::DatasetView(wrong) : sk::data::DatasetView(right);
  Model model{sk::Seed{c.model_seed}};
  sk::Trainer trainer{model, ThrowingLoss{}, sk::optim::Sgd{.lr = c.lr}, policy};
  sk::FitOptions o{
      .epochs = c.epochs, .batch = c.batch, .progress = false, .threads = c.threads, .compute = {.execution = execution}};
  if (c.stands_still) o.callbacks.add(Sleeper{c.stands_still});
  if (c.validate) o.validate = data;
  if (c.change) c.change(o);
  if (c.meddle) o.callbacks.add(Meddler{&model, c.meddle});
  trainer.fit(data, o);
}

/// A call of all ranks that rank 0 alone makes.
enum class Alone { save, save_in_fit, evaluate, load, load_weights, fit, trainer };

/// Two epochs on all ranks, then the call on rank 0.
template <class Policy> void call_alone(const Policy& policy, int rank, Alone what, int threads, const std::string& path) {
  const auto data = sk::data::InMemory<float>({1, {12}}, std::vector<float>(12 * 32, 0.5f), std::vector<int>(32, 1), 4);
  Model model{sk::Seed{5}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}, policy};
  sk::FitOptions o{.epochs = 2, .batch = 16, .progress = false, .threads = threads};
  struct Saver {
    std::function<void()> save;
    void on_epoch_end(const sk::train::EpochRecord&, sk::train::FitControl&) { save(); }
  };
  if (what == Alone::save_in_fit && rank == 0) o.callbacks.add(Saver{[&] { trainer.save(path); }});
  trainer.fit(data, o);
  if (rank != 0) return;
  if (what == Alone::save) trainer.save_weights(path + ".weights");  // a call of one rank
  if (what == Alone::save) trainer.save(path);
  if (what == Alone::evaluate) (void)trainer.evaluate(data);
  if (what == Alone::load) trainer.load(path);
  if (what == Alone::load_weights) trainer.load_weights(path);
  if (what == Alone::fit) trainer.fit(data, o);
  if (what == Alone::trainer) {
    Model another{sk::Seed{5}};
    const sk::Trainer second{another, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}, policy};
  }
}
/// What rank 0 must hear then.
inline std::string alone_text(Alone what, int ranks) {
  const std::string call = what == Alone::evaluate       ? "evaluate"
                           : what == Alone::load         ? "load"
                           : what == Alone::load_weights ? "load_weights"
                           : what == Alone::fit          ? "fit"
                           : what == Alone::trainer      ? "making a Trainer"
                                                         : "save";
  if (ranks > 2) return call + " is a call of all ranks: rank";  // over messages a rank hears of one other first
  return call + " is a call of all ranks: rank 1 has not called it" + (what == Alone::save_in_fit ? "; it is in fit. " : ". ");
}

/// What a fit throws, its type apart; "" where it ends well.
template <class Function> std::string thrown(Function&& f) {
  try {
    f();
  } catch (const std::exception& e) { return e.what(); }
  return "";
}

}  // namespace failure_cases
