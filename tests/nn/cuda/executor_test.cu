// SPDX-License-Identifier: Apache-2.0
// A pass on a GPU: gradients, outputs and sums are the Cpu's, for batches of the host and of the device, whatever their pitch.
#include <catch2/catch.hpp>

#include "train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Net = nn::Sequential<nn::Conv2d<4, sk::Kernel<3>>, nn::Relu, nn::Residual<nn::Conv2d<4, sk::Kernel<3>, sk::Padding<1>>>,
                           nn::Flatten, nn::Linear<9>, nn::Concat<nn::Linear<3>, nn::Tanh>, nn::Linear<5>>;
using In = sk::Shape<6, 6, 2>;
template <class Device> using Model = sk::Model<Net, In, Device, double>;

template <class Model> std::vector<double> gradients(const Model& m) { return twins::values(m.gradients(), m.where()); }
template <class Executor> std::vector<double> outputs(const Executor& executor, long n, typename Executor::Device where) {
  return twins::values(sk::DeviceSpan<const double, typename Executor::Device>(
                           executor.outputs(), static_cast<std::size_t>(n * Executor::output_pitch)),
                       where);
}
}  // namespace

TEST_CASE("a pass on a GPU has the gradients of the Cpu", "[nn][cuda]") {
  Model<sk::Cpu> here{sk::Seed{4}};
  Model<sk::Cuda> there{sk::Seed{4}};
  const twins::Data<Model<sk::Cpu>, nn::CrossEntropy> data(7);
  sk::Executor a{here, nn::CrossEntropy{}, {.capacity = 7, .threads = 1}};
  sk::Executor b{there, nn::CrossEntropy{}, {.capacity = 7}};
  b.prepare(7);
  const auto batch = data.batch(0, 7);
  const nn::LossSums wanted = a.forward_backward(batch), got = b.forward_backward(batch);
  CHECK(got.loss == Approx(wanted.loss).epsilon(1e-12));
  CHECK(got.weight == wanted.weight);
  CHECK(got.correct == wanted.correct);
  CHECK(twins::apart(gradients(here), gradients(there)) < 1e-12);
  CHECK(twins::apart(outputs(a, 7, {}), outputs(b, 7, {})) < 1e-12);

  // added up over calls
  (void)a.forward_backward(data.batch(0, 3), {.scale = 1.0 / 7});
  (void)b.forward_backward(data.batch(0, 3), {.scale = 1.0 / 7});
  const nn::LossSums two = a.forward_backward(data.batch(3, 7), {.scale = 1.0 / 7, .accumulate = true}),
                     same = b.forward_backward(data.batch(3, 7), {.scale = 1.0 / 7, .accumulate = true});
  CHECK(same.loss == Approx(two.loss).epsilon(1e-12));
  CHECK(twins::apart(gradients(here), gradients(there)) < 1e-12);

  // evaluation
  CHECK(b.evaluate(batch).loss == Approx(a.evaluate(batch).loss).epsilon(1e-12));
}

TEST_CASE("gradients on a GPU are divided by the weight of all samples", "[nn][cuda]") {
  Model<sk::Cuda> model{sk::Seed{4}};
  const twins::Data<Model<sk::Cuda>, nn::CrossEntropy> data(7);
  sk::Executor executor{model, nn::CrossEntropy{.class_weights = {1, 2, 3, 0.5f, 1}}, {.capacity = 7}};
  (void)executor.forward_backward(data.batch(0, 7));
  const auto wanted = gradients(model);
  (void)executor.forward_backward(data.batch(0, 3), {.of_samples = 7});
  const nn::LossSums sums = executor.forward_backward(data.batch(3, 7), {.of_samples = 7, .accumulate = true});
  CHECK(sums.weight != 7);
  CHECK(twins::apart(gradients(model), wanted) > 1e-3);
  executor.divide_by_weight(sums.weight);
  CHECK(twins::apart(gradients(model), wanted) < 1e-12);
}

TEST_CASE("a pass takes batches of its GPU, with rows further apart too", "[nn][cuda]") {
  Model<sk::Cuda> model{sk::Seed{4}};
  const twins::Data<Model<sk::Cuda>, nn::CrossEntropy> data(7);
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 7}};
  const auto host = data.batch(0, 7);
  (void)executor.forward_backward(host);
  const auto wanted = gradients(model);
  sk::data::Batch<double> wide = host;
  const long pitch = host.pitch + 5;
  std::vector<double> rows(static_cast<std::size_t>(7 * pitch), 1e300);
  for (long i = 0; i < 7; ++i) std::copy_n(host.x + i * host.pitch, In::count, rows.data() + i * pitch);
  wide.x = rows.data();
  wide.pitch = pitch;
  (void)executor.forward_backward(wide);
  CHECK(gradients(model) == wanted);

  sk::Arena<double, sk::Cuda> x(rows.size());
  sk::Arena<std::int32_t, sk::Cuda> labels(7);
  sk::Copy<sk::Cuda, sk::Cpu>::run(x.data(), rows.data(), rows.size() * sizeof(double));
  sk::Copy<sk::Cuda, sk::Cpu>::run(labels.data(), host.labels, 7 * sizeof(std::int32_t));
  sk::data::Batch<double, sk::Cuda> there;
  there.x = x.data();
  there.pitch = pitch;
  there.labels = labels.data();
  there.count = there.global_count = 7;
  (void)executor.forward_backward(there);
  CHECK(gradients(model) == wanted);
}

TEST_CASE("a loop by hand on a GPU", "[nn][cuda]") {
  Model<sk::Cpu> here{sk::Seed{4}};
  Model<sk::Cuda> there{sk::Seed{4}};
  const twins::Data<Model<sk::Cpu>, nn::CrossEntropy> data(12);
  auto train = [&](auto& model) {
    using M = std::remove_cvref_t<decltype(model)>;
    sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 6, .threads = 1}};
    sk::optim::BoundOptimizer<sk::optim::Adam, double, typename M::device> optimizer{sk::optim::Adam{.lr = 0.01f}, M::program,
                                                                                     model.where()};
    for (long s = 0; s < 10; ++s) {
      (void)executor.forward_backward(data.batch(s % 2 * 6, s % 2 * 6 + 6));
      const double* gradients[] = {model.gradients().data};
      const auto weights = model.modify();
      optimizer.update(weights.data(), {.step = s + 1, .lr = 0.01, .gradients = gradients}, 0, M::sizes.stored);
    }
    return twins::values(model.parameters(), model.where());
  };
  CHECK(twins::apart(train(here), train(there)) < 1e-10);
}

TEST_CASE("a loop by hand runs on the model's GPU, whichever is current", "[nn][cuda]") {
  if (sk::cuda::device_count() < 2) {
    WARN("one GPU: nothing to choose");
    return;
  }
  const auto trained = [](auto where) {
    using M = Model<decltype(where)>;
    M model{sk::Seed{4}, where};
    sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 7, .threads = 1}};
    sk::optim::BoundOptimizer optimizer{sk::optim::Sgd{.lr = 0.1f, .momentum = 0.9}, model};
    const twins::Data<M, nn::CrossEntropy> data(7);
    const sk::cuda::UseDevice other(sk::Cuda{0});
    for (int step = 0; step < 3; ++step) {
      (void)executor.forward_backward(data.batch(0, 7));
      const sk::Arena<float, decltype(where)> fresh(16, where);  // the pretend runtime looks more closely after an allocation
      optimizer.step(model);
    }
    CHECK(sk::cuda::current_device() == sk::Cuda{0});
    return twins::values(model.parameters(), model.where());
  };
  CHECK(twins::apart(trained(sk::Cpu{}), trained(sk::Cuda{1})) < 1e-12);
}

TEST_CASE("the summary of a pass on a GPU names its kernels and its memory", "[nn][cuda]") {
  sk::Model<Net, In, sk::Cuda> model{sk::Seed{4}};
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 7}};
  executor.prepare(7);
  const std::string text = sk::summary(executor);
  CAPTURE(text);
  CHECK_THAT(text, Catch::Contains("own kernels of few channels") && Catch::Contains("cuBLASLt"));
  CHECK_THAT(text,
             Catch::Contains("runs layer by layer, on Cuda") && Catch::Contains("memory for 7 samples on Cuda 0: parameters "));
  CHECK_THAT(text, Catch::Contains("workspace of libraries"));
}
