// SPDX-License-Identifier: Apache-2.0
// Two inputs (a picture and two numbers), two outputs (a class and a number), a loss and a metric for each output.
#include <skein/data/join.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/skein.hpp>
#include <skein/train/metrics/graph_metric.hpp>

#include <cstdio>
namespace sk = skein;
namespace nn = skein::nn;
using nn::Apply, nn::From, nn::Input, nn::Output, nn::To;

// [quote network]
// clang-format off
struct Bill : nn::Graph<  // `struct name` in front of an edge's name declares the name
    Input<struct picture, sk::Shape<28, 28, 1>>, Input<struct terms, sk::Shape<2>>,
    Apply<nn::Sequential<nn::Flatten, nn::Linear<32>, nn::Relu>, From<picture>, To<struct seen>>,
    Apply<nn::Sequential<nn::Linear<32>, nn::Relu>, From<terms>, To<struct known>>,
    Apply<nn::Concatenate, From<seen, known>, To<struct both>>,
    Apply<nn::Linear<10>, From<seen>, To<struct digit>>,
    Apply<nn::Sequential<nn::Linear<32>, nn::Relu, nn::Linear<1>>, From<both>, To<struct price>>,
    Output<digit>, Output<price>> {};
// clang-format on
using BillModel = sk::Model<Bill, Bill::input>;
// [end]

int main(int argc, char** argv) {
  return sk::run(argc, argv, [&] {
    // [quote data]
    const auto pictures = sk::data::synthetic_digits(3000, sk::Seed{1});
    const sk::Tensor<float, 2> numbers = sk::uniform<float>(sk::Seed{1}, sk::dims(3000, 2));  // pieces, discount
    sk::Tensor<float, 1> prices = sk::zeros<float>(3000);                                     // (3000)
    for (long i = 0; i < 3000; ++i)
      prices(i) = static_cast<float>(pictures.label(i)) / 9 * numbers(i, 0) * (1 - numbers(i, 1) / 2);
    const auto terms_and_prices = sk::data::from_tensors(numbers, prices);
    const auto bills = sk::data::join(pictures, terms_and_prices);
    const auto [train, test] = sk::data::split(bills, 0.8, sk::Seed{1});
    // [end]
    // [quote training]
    BillModel model{sk::Seed{1}};
    const auto loss = nn::graph_loss<BillModel>(nn::on<digit>(nn::CrossEntropy{}), nn::on<price>(nn::Mse{}, 10));
    sk::Trainer trainer{model, loss, sk::optim::Adam{.lr = 0.003f}};
    const sk::History history =
        trainer.fit(train, {.epochs = 6,
                            .batch = 50,
                            .validate = test,
                            .metrics = {sk::train::metric_on<digit>(loss, sk::train::Accuracy{}, "digit"),
                                        sk::train::metric_on<price>(loss, sk::train::MeanAbsoluteError{}, "cost")},
                            .progress = false});
    // [end]
    std::printf("digits: %.2f right; prices: %.3f off\n", history.back().validation["digit accuracy"],
                history.back().validation["cost mean absolute error"]);
  });
}
