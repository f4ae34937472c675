// expect: a Table is no data set, since its columns may be texts or missing: a TableEncoder makes one, encoder.fit(training).encode(training)
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/csv.hpp>
#include <skein/data/table_encoder.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  const std::vector<float> x(8), y(8);
#ifdef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
  const auto table = sk::data::parse_csv("x,y\n1,2\n");
  sk::data::TableEncoder encoder;
  encoder.numbers({"x"}).target({"y"});
  trainer.fit(encoder.fit(table).encode(table), {.epochs = 5, .batch = 32});
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
  const auto table = sk::data::parse_csv("x,y\n1,2\n");
  trainer.fit(table, {.epochs = 5, .batch = 32});
#endif
}
