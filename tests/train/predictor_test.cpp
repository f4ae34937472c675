// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/train/predictor.hpp>

#include "../support/shard_cases.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
using Net = nn::Sequential<nn::Flatten, nn::Linear<20>, nn::BatchNorm<>, nn::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<6, 6, 1>>;
template <class T> std::vector<float> values(const T& t) { return {t.begin(), t.end()}; }
}  // namespace

TEST_CASE("A predictor predicts what the trainer does, of its file, without gradients", "[train]") {
  const support::TemporaryFolder folder;
  const shard_cases::Images images;
  const auto data = sk::data::from_tensors(images.x, sk::Extents{3, {6, 6, 1}}, images.labels);
  Model trained{sk::Seed{3}};
  sk::Trainer trainer{trained, nn::CrossEntropy{}, sk::optim::Adam{}};
  trainer.fit(data, {.epochs = 2, .batch = 19, .progress = false});
  trainer.save(folder / "training");
  const auto expected = trainer.predict(data);

  Model model{sk::Seed{9}};
  sk::Predictor predictor{model, {.capacity = 16, .threads = 2}};
  CHECK(values(predictor.predict(data)) != values(expected));
  predictor.load(folder / "training");
  CHECK(values(predictor.predict(data)) == values(expected));
  const sk::Tensor<float, 4> x(std::span<const float>(images.x), sk::dims(61, 6, 6, 1));
  CHECK(values(predictor.predict(x)) == values(expected));
  CHECK(std::as_const(model).gradients().size == 0);
  CHECK(predictor.memory_plan().gradients == 0);

  const sk::Tensor<float, 2> narrow(sk::dims(2, 35));
  CHECK_THROWS_WITH(predictor.predict(narrow), Catch::Contains("the rows of x are Shape<35>, the model takes Shape<6, 6, 1>"));
  const sk::Tensor<float, 2> flat(sk::dims(2, 36));
  CHECK_THROWS_WITH(predictor.predict(flat), Catch::Contains("say so: a tensor of samples x 6 x 6 x 1"));
  sk::Model<nn::Sequential<nn::Flatten, nn::Linear<20>>, sk::Shape<6, 6, 1>> smaller;
  const auto before = values(smaller.parameters());
  sk::Predictor other{smaller};
  CHECK_THROWS_WITH(other.load(folder / "training"), Catch::Contains("the file's network has a parameter '"));
  CHECK(values(smaller.parameters()) == before);
}
