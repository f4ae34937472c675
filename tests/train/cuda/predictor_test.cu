// SPDX-License-Identifier: Apache-2.0
// A Predictor whose model is on a GPU: rows of another GPU, and threads that share it.
#include <catch2/catch.hpp>

#include <thread>
#include <vector>

#include <skein/cuda.hpp>
#include <skein/train/predictor.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Net = nn::Sequential<nn::Linear<7>, nn::Tanh, nn::Linear<3>>;

sk::Tensor<float, 2> rows(int thread) {
  sk::Tensor<float, 2> x(sk::dims(40, 4));
  for (long i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>((i * 7 + thread * 13) % 11) / 11;
  return x;
}
std::vector<float> values(const sk::Tensor<float, 2, sk::Cuda>& there) {
  const sk::Tensor<float, 2> here = there.to<sk::Cpu>();
  return {here.data(), here.data() + here.size()};
}
}  // namespace

TEST_CASE("rows on another GPU than the model's are refused with both", "[train][cuda]") {
  if (sk::cuda::device_count() < 2) {
    WARN("this takes two GPUs");
    return;
  }
  sk::Model<Net, sk::Shape<4>, sk::Cuda> model{sk::Seed{1}, sk::Cuda{1}};
  sk::Predictor predictor{model};
  const sk::Tensor<float, 2, sk::Cuda> x = rows(0).to<sk::Cuda>();
  CHECK_THROWS_WITH(predictor.predict(x), "predict: the rows are on Cuda 0, the model on 1: move them with .to(model.where())");
  CHECK(predictor.predict(x.to(model.where())).device() == sk::Cuda{1});
}

TEST_CASE("threads predict one after the other with one predictor on a GPU, each on a stream of its own", "[train][cuda]") {
  sk::Model<Net, sk::Shape<4>, sk::Cuda> model{sk::Seed{2}};
  sk::Predictor shared{model, {.capacity = 16}};
  const auto idle = [] { return cudaStreamQuery(sk::cuda::stream()) == cudaSuccess; };
  CHECK(idle());  // the next call may be another thread's
  std::vector<std::vector<float>> wanted;
  for (int k = 0; k < 3; ++k) {
    const sk::Tensor<float, 2, sk::Cuda> x = rows(k).to<sk::Cuda>(), y = shared.predict(x);
    CHECK(idle());
    wanted.push_back(values(y));
  }
  std::vector<int> wrong(3, 0);
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k)
    threads.emplace_back([&, k] {
      const auto own = static_cast<std::size_t>(k);
      const sk::Tensor<float, 2, sk::Cuda> x = rows(k).to<sk::Cuda>();
      for (int turn = 0; turn < 20; ++turn) wrong[own] += values(shared.predict(x)) != wanted[own];
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<int>(3, 0));
}
