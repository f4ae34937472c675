// SPDX-License-Identifier: Apache-2.0
// Gradients of free-form expressions by the tape (autodiff::Variable), beside the chain rule written out by hand, and beside
// finite differences. Prints a table and fails where the three disagree.
// ctest expects: all gradients agree
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include <skein/autodiff/variable.hpp>
#include <skein/skein.hpp>
namespace sk = skein;
using sk::Tensor;
using sk::autodiff::constant;
using sk::autodiff::Variable;

namespace {

double worst = 0;

/// One row: f(x) by the tape, `by_hand(x)` as its gradient, and differences of f in the middle.
template <int Rank, class F>
void row(const char* text, const Tensor<double, Rank>& at, F f, const Tensor<double, Rank>& by_hand) {
  Variable<double, Rank> x(at.copy());
  const auto y = f(x);
  y.backward();
  double hand = 0, difference = 0;
  const double h = 1e-6;
  for (long i = 0; i < at.size(); ++i) {
    Tensor<double, Rank> up = at.copy(), down = at.copy();
    up.data()[i] += h;
    down.data()[i] -= h;
    const double derivative = (f(constant(std::move(up))).value().item() - f(constant(std::move(down))).value().item()) / (2 * h);
    const double taped = x.gradient().data()[i], scale = std::max(1.0, std::abs(taped));
    hand = std::max(hand, std::abs(taped - by_hand.data()[i]) / scale);
    difference = std::max(difference, std::abs(taped - derivative) / scale);
  }
  std::printf("%-34s %12.6f %14.6f %11.1e %13.1e\n", text, y.value().item(), x.gradient().data()[0], hand, difference);
  worst = std::max({worst, hand * 1e6, difference});
}

}  // namespace

int main() {
  std::printf("%-34s %12s %14s %11s %13s\n", "y = f(x)", "y", "dy/dx, first", "to the hand", "to differences");

  const Tensor<double, 2> ones(sk::ones<double>(2, 2));
  row(
      "mean(3 (x + 2)^2)", ones, [](auto x) { return mean((x + 2) * (x + 2) * 3); }, Tensor<double, 2>(6.0 * (ones + 2.0) / 4.0));

  const Tensor<double, 1> x = sk::linspace(0.1, 2.0, 20);
  row(
      "sum(sqrt(x) sin(3.14 x / 5))", x, [](auto v) { return sum(sqrt(v) * sin(v * (3.14 / 5))); },
      Tensor<double, 1>(sin(x * (3.14 / 5)) / (2.0 * sqrt(x)) + sqrt(x) * cos(x * (3.14 / 5)) * (3.14 / 5)));
  row(
      "sum(exp(-x^2 / 2))", x, [](auto v) { return sum(exp(v * v * -0.5)); }, Tensor<double, 1>(-x * exp(x * x * -0.5)));
  row(
      "log(sum(exp(x)))", x, [](auto v) { return log(sum(exp(v))); }, Tensor<double, 1>(exp(x) / sum(exp(x))));
  row(
      "x . x / sqrt(x . x)", x, [](auto v) { return dot(v, v) / sqrt(dot(v, v)); }, Tensor<double, 1>(x / std::sqrt(sum(x * x))));

  // Two layers: sum((tanh(x W1) W2)^2).
  const Tensor<double, 2> in(sk::normal<double>(sk::Seed{1}, sk::dims(5, 3))),
      w1(sk::normal<double>(sk::Seed{2}, sk::dims(3, 4))), w2(sk::normal<double>(sk::Seed{3}, sk::dims(4, 2)));
  const Tensor<double, 2> hidden(tanh(mm(in, w1))), out = mm(hidden, w2);  // (5, 4), (5, 2)
  const Tensor<double, 2> back(mm(Tensor<double, 2>(2.0 * out), w2.transpose()) * (1.0 - hidden * hidden));
  row(
      "sum((tanh(X w) W2)^2), by w", w1,
      [&](auto w) { return sum(square(mm(tanh(mm(constant(in.copy()), w)), constant(w2.copy())))); }, mm(in.transpose(), back));
  row(
      "the same, by X", in, [&](auto v) { return sum(square(mm(tanh(mm(v, constant(w1.copy()))), constant(w2.copy())))); },
      mm(back, w1.transpose()));

  const bool agree = worst < 1e-4;  // 1e-10 to the hand, 1e-4 to the differences
  std::printf("%s\n", agree ? "all gradients agree" : "gradients DIFFER");
  return agree ? 0 : 1;
}
