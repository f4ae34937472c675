// SPDX-License-Identifier: Apache-2.0
// How long does a step of Adam take over the parameters of three networks (10 k, 44 k, 670 k), on one thread?
#include "support/training.hpp"

namespace {
using namespace bench;

/// LeNet without padding: 44,426 parameters.
struct SmallLeNet
    : nn::Sequential<nn::Conv2d<6, sk::Kernel<5>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<16, sk::Kernel<5>>, nn::Relu,
                     nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu, nn::Linear<84>, nn::Relu, nn::Linear<10>> {
  using input = sk::Shape<28, 28, 1>;
  static constexpr const char* words =
      "28,28,1 conv:6:5:1:0 relu pool:2 conv:16:5:1:0 relu pool:2 flatten linear:120 relu linear:84 relu linear:10";
};

template <class Network> bool adam(Report& report, Line l) {
  using Model = ModelOf<Network>;
  Model model{sk::Seed{7}};
  const long stored = Model::sizes.stored;
  const Exchange exchange;
  const std::vector<float> weights = logical(model);
  exchange.write("weights", weights.data(), weights.size());
  exchange.write("gradients", weights.data(), weights.size());  // any numbers will do: here each weight is its own gradient
  const sk::Arena<float> gradient = [&] {
    sk::Arena<float> g(static_cast<std::size_t>(stored));
    std::copy_n(model.parameters().data, stored, g.data());
    return g;
  }();
  const float* gradients[] = {gradient.data()};
  sk::optim::BoundOptimizer<sk::optim::Adam, float, sk::Cpu> optimizer{sk::optim::Adam{.lr = 1e-3f}, Model::program};
  std::int64_t step = 0;
  float rate = 1e-3f;
  auto update = [&] {
    const auto weights = model.modify();
    optimizer.update(weights.data(), {.step = ++step, .lr = rate, .gradients = gradients}, 0, stored);
  };

  for (int i = 0; i < 5; ++i) update();
  const std::vector<float> after = logical(model);
  exchange.write("expected", after.data(), after.size());
  rate = 1e-7f;

  const auto peer = best_peer("optimizer.py", {"--folder", exchange.path(), "--network", Network::words},
                              {{.threads = 1, .option = "--lists"}, {.threads = 1, .option = "--flat"}}, report.quick());
  std::string wrong;
  if (peer)
    if (const double d = std::stod(peer->ask("check 5")); !(d <= 1e-4))
      wrong = "parameters differ by " + number(d) + " after 5 steps";
  const long held = 16 * Model::parameter_count;  // bytes; of which 12 are written too
  l.floor = 1e3 * 28.0 / 16.0 * static_cast<double>(held) / bandwidth(held, report.quick());
  const bool right = against(l, candidate(update), peer.get(), wrong, report.quick());
  report.add(l);
  return right;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("optimizer", options(argc, argv));
  bool right = adam<FunctionFit>(report, {.metric = "Adam, 9,921 parameters", .must = {0.07}, .hope = {0.045}, .threads = 1});
  right &= adam<SmallLeNet>(report, {.metric = "Adam, 44,426 parameters", .must = {0.22}, .hope = {0.16}, .threads = 1});
  right &= adam<Mlp>(report, {.metric = "Adam, 669,706 parameters", .must = {0.65}, .hope = {0.55}, .threads = 1});
  return report.finish(right);
}
