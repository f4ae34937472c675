// SPDX-License-Identifier: Apache-2.0
// What .on_nan's default costs: fits of 8 LeNet steps each by one trainer, that stop at a loss which is no number against such
// that go on, A B B A. Prints milliseconds a step, the median of the ratios and its interval; the same of fits that go on against
// themselves, which tells what the machine can measure.
#include <cstdio>
#include <cstring>

#include "support/networks.hpp"
#include "support/slices.hpp"

namespace {
using namespace bench;
constexpr int steps = 8;
constexpr long batch = 128;

class Fits {
 public:
  /// One fit after another; the rate is so small that the weights stay plausible.
  Candidate operator()(sk::OnNan on_nan) {
    return [this, on_nan](long n) {
      return timed(
          n, [&] { trainer_.fit(digits_, {.epochs = 1, .batch = batch, .progress = false, .threads = 1, .on_nan = on_nan}); });
    };
  }

 private:
  sk::data::InMemory<std::uint8_t> digits_ = sk::data::synthetic_digits(steps * batch, sk::Seed{3});
  ModelOf<LeNet> model_{sk::Seed{7}};
  sk::Trainer<ModelOf<LeNet>, nn::CrossEntropy, sk::optim::Sgd> trainer_{model_, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 1e-6}};
};
}  // namespace

int main(int count, char** arguments) {
  const Plan plan{.slice = 0.02, .rounds = count > 1 && std::strcmp(arguments[1], "--quick") == 0 ? 60 : 300};
  Fits fits;
  const Candidate stops = fits(sk::OnNan::stop), goes_on = fits(sk::OnNan::go_on);
  const Comparison guard = compare(stops, goes_on, plan), control = compare(goes_on, goes_on, plan);
  std::printf("%.4f %.5f %.5f %.5f %.5f %.5f %.5f\n", 1e3 * guard.a / steps, guard.ratio.median, guard.ratio.low,
              guard.ratio.high, control.ratio.median, control.ratio.low, control.ratio.high);
}
