// SPDX-License-Identifier: Apache-2.0
// Layers of tensor expressions beside the same by hand: samples of every rank, workers, 16-bit activations, a dx that nobody
// wants.
#include <catch2/catch.hpp>

#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/precision.hpp>
#include <skein/nn/summary.hpp>

#include "../support/close.hpp"
#include "../support/larger.hpp"
#include "../support/layer_harness.hpp"
#include "../support/own_layers.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using own_layers::Scale, own_layers::ScaleByHand, own_layers::Squash;
using support::LayerHarness;
template <class L> using AsLayer = nn::ExpressionLayer<L>;

namespace {

/// All that Scale makes at In is what the loops by hand make.
template <class In, class S> void twin(long batch, int workers, bool wants_dx = true) {
  INFO(batch << " samples, " << workers << " workers" << (wants_dx ? "" : ", no dx"));
  LayerHarness<AsLayer<Scale>, In, S> ours(batch, workers);
  LayerHarness<ScaleByHand, In, S> theirs(batch);
  for (long i = 0; i < In::extents.last(); ++i)
    ours.parameters[i] = theirs.parameters[i] = static_cast<S>(support::wave(i, 0.9) + 1.5);
  for (int turn = 0; turn < 2; ++turn) {  // the second adds to the first
    ours.forward(), theirs.forward();
    ours.backward(wants_dx, turn == 1), theirs.backward(wants_dx, turn == 1);
  }
  long wrong = 0;
  for (long b = 0; b < batch; ++b)
    for (long i = 0; i < In::count; ++i) {
      wrong += ours.y_at(b, i) != theirs.y_at(b, i);
      if (wants_dx) wrong += ours.dx_at(b, i) != theirs.dx_at(b, i);
      else wrong += !std::isnan(ours.dx_at(b, i));
    }
  for (long i = 0; i < In::extents.last(); ++i)
    wrong += !support::close<S>(ours.gradients()[i], theirs.gradients()[i], support::Roundings::arithmetic,
                                static_cast<double>(2 * batch * In::count / In::extents.last()));
  CHECK(wrong == 0);
  CHECK(ours.worst_gap() == 0);
  CHECK(ours.intact());
}
template <class In> void twins() {
  twin<In, float>(1, 1);
  twin<In, float>(7, 2);
  twin<In, float>(37, 4, false);
  twin<In, double>(3, 4);  // one worker has no samples
}

template <class L, class In> void differences() {
  sk::assert_layer<L, In>();
  LayerHarness<AsLayer<L>, In, double>(5, 2).check_gradients();
}

struct Constant {  // a number assigned
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
  static void forward(auto& f) { f.y() = 0.5; }
  static void backward(auto& f) { f.dx() = 0; }
};

template <class L> using Net = nn::Sequential<nn::Linear<24>, L, nn::Linear<3>>;

/// Outputs and gradients of a network with L in the middle, over 50 samples.
template <class L, class Precision> std::vector<double> trained(int threads, sk::Execution execution) {
  using Model = sk::Model<Net<L>, sk::Shape<6>, sk::Cpu, Precision>;
  Model model{sk::Seed{3}};
  constexpr long batch = 50, in = sk::row_pitch(6), out = sk::row_pitch(3);
  sk::Executor executor{model, nn::Mse{}, {.capacity = batch, .execution = execution, .threads = threads}};
  std::vector<float> x(batch * in), t(batch * out);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(support::wave(static_cast<long>(i), 0.7));
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<float>(support::wave(static_cast<long>(i), 1.9));
  executor.forward_backward(sk::BatchView<float>{x.data(), in, nullptr, t.data(), out, batch});
  std::vector<double> result(executor.outputs(), executor.outputs() + batch * out);
  for (const float g : model.gradients()) result.push_back(static_cast<double>(g));
  return result;
}
/// The largest difference beside the largest value.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = support::larger(most, a[i] - b[i]), size = std::max(size, std::abs(b[i]));
  return most / size;
}

}  // namespace

TEST_CASE("A layer of expressions is the same layer by hand, on samples of every rank", "[nn]") {
  twins<sk::Shape<1>>();
  twins<sk::Shape<3>>();
  twins<sk::Shape<7>>();
  twins<sk::Shape<64>>();
  twins<sk::Shape<1000>>();
  twins<sk::Shape<5, 3>>();
  twins<sk::Shape<4, 17>>();
  twins<sk::Shape<6, 6, 1>>();
  twins<sk::Shape<3, 2, 130>>();
  twins<sk::Shape<2, 3, 2, 16>>();
}

TEST_CASE("Layers of expressions agree with finite differences", "[nn]") {
  differences<Scale, sk::Shape<7>>();
  differences<Scale, sk::Shape<3, 5>>();
  differences<Squash, sk::Shape<1>>();
  differences<Squash, sk::Shape<9>>();
  differences<Squash, sk::Shape<3, 20>>();
  differences<Squash, sk::Shape<2, 3, 4>>();
  differences<Constant, sk::Shape<5>>();
}

TEST_CASE("A layer of expressions stands in a network, its table and its summary as any other", "[nn]") {
  using Model = sk::Model<Net<Squash>, sk::Shape<6>>;
  STATIC_REQUIRE(Model::parameter_count == 7 * 24 + 1 + 24 + 24 + 25 * 3);
  const auto text = sk::summary(Model{sk::Seed{1}});
  STATIC_REQUIRE(Model::parameter("1.gain").extents == sk::Extents{1, {1}});
  STATIC_REQUIRE(!Model::parameter("1.position").decay);
  for (const char* word : {"Squash", "expressions"}) CHECK(text.find(word) != std::string::npos);
}

TEST_CASE("A network with a layer of expressions computes what one by hand does, on workers and in 16 bits", "[nn]") {
  for (int threads : {1, 2, 4})
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
      INFO(threads << " threads, " << (execution == sk::Execution::depth_first ? "depth-first" : "layer by layer"));
      CHECK(apart(trained<Scale, float>(threads, execution), trained<ScaleByHand, float>(threads, execution)) < 1e-6);
      CHECK(apart(trained<Scale, sk::precision::bf16>(threads, execution),
                  trained<ScaleByHand, sk::precision::bf16>(threads, execution)) < 1e-6);
    }
  CHECK(apart(trained<Scale, sk::precision::bf16>(1, sk::Execution::layer_wise),
              trained<Scale, float>(1, sk::Execution::layer_wise)) > 1e-6);  // it was rounded
}
