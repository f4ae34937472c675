// SPDX-License-Identifier: Apache-2.0
// Two networks that train each other (a GAN): a generator makes points, a critic tells them from points of a circle.
#include <skein/nn/copy_weights.hpp>
#include <skein/skein.hpp>

#include <cmath>
#include <cstdio>
namespace sk = skein;
namespace nn = skein::nn;

// [quote networks]
struct Generator : nn::Sequential<nn::Linear<32>, nn::Relu, nn::Linear<32>, nn::Relu, nn::Linear<2>> {};
struct Critic : nn::Sequential<nn::Linear<32>, nn::LeakyRelu<>, nn::Linear<32>, nn::LeakyRelu<>, nn::Linear<1>> {};
struct Judged : nn::Sequential<Generator, Critic> {};  // the critic's gradient of its input is what the generator learns from
// [end]

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    constexpr long batch = 64;
    // [quote made]
    sk::Model<Critic, sk::Shape<2>> critic{sk::Seed{1}};
    sk::Model<Judged, sk::Shape<4>> judged{sk::Seed{2}};        // has the generator's weights, and a copy of the critic's
    sk::Model<Generator, sk::Shape<4>> generator{sk::Seed{2}};  // a copy, which makes points
    sk::Executor critic_pass{critic, nn::BinaryCrossEntropy{}, {.capacity = 2 * batch}};
    sk::Executor judged_pass{judged, nn::BinaryCrossEntropy{}, {.capacity = batch}};
    sk::Predictor makes{generator, {.capacity = batch}};
    const sk::optim::Adam adam{.lr = 1e-3f, .beta1 = 0.5f};
    sk::optim::Adam adam_of_generator = adam;
    adam_of_generator.groups = {sk::optim::frozen("1.*")};  // the critic within does not learn here
    sk::optim::BoundOptimizer critic_step{adam, critic};
    sk::optim::BoundOptimizer generator_step{adam_of_generator, judged};
    // [end]
    // [quote pass]
    const auto pass = [](auto& executor, auto& model, auto& optimizer, const auto& x, const auto& y) {
      double loss = 0;
      sk::data::Loader<> all{sk::data::from_tensors(x, y), {.batch = x.extent(0), .shuffle = false}};  // one batch
      for (const sk::data::Batch<>& samples : all.epoch(0)) loss = executor.forward_backward(samples).mean();
      optimizer.step(model);
      return loss;
    };
    // [end]
    sk::Tensor<float, 2> points = sk::zeros<float>(2 * batch, 2), real = sk::zeros<float>(2 * batch, 1);
    real(sk::range(0, batch)) = 0.9f;  // not 1: the critic shall not be too sure
    for (std::uint64_t step = 0; step < 2000; ++step) {
      const sk::Tensor<float, 2> noise = sk::normal<float>(sk::Seed{10 + step}, sk::dims(batch, 4));
      const sk::Tensor<float, 1> angle = sk::uniform<float>(sk::Seed{10 + step}, sk::dims(batch)) * 6.2831853f;
      // [quote step]
      points(sk::range(0, batch), 0) = cos(angle), points(sk::range(0, batch), 1) = sin(angle);
      sk::copy_weights(judged, generator, {.from = "0."});
      points(sk::range(batch, 2 * batch)) = makes.predict(noise);
      const double told = pass(critic_pass, critic, critic_step, points, real);
      sk::copy_weights(critic, judged, {.to = "1."});
      const double fooled = pass(judged_pass, judged, generator_step, noise, sk::ones<float>(batch, 1));
      // [end]
      if (step % 1000 != 999) continue;
      const auto made = points(sk::range(batch, 2 * batch));
      std::printf("step %d: losses %.2f and %.2f, mean radius %.2f\n", static_cast<int>(step + 1), told, fooled,
                  static_cast<double>(mean(sqrt(sum(made * made, 1)))));
    }
  });
}
