// SPDX-License-Identifier: Apache-2.0
// Does a fit leave the system alone after its first step: no page fault, no allocation, no oneDNN primitive made, in any step,
// shorter last batches and the validation included? On one thread, on two, on two ranks.
#include "support/counted.hpp"
#include "support/networks.hpp"
#include "support/report.hpp"

namespace {
using namespace bench;

/// Takes the counts after step `from` and after the last epoch.
struct Watch {
  Counts* first;
  Counts* last;
  int from;
  void on_step_end(const sk::train::StepRecord& s, sk::train::FitControl&) const {
    if (s.step == from) *first = Counts::now();
  }
  void on_epoch_end(const sk::train::EpochRecord&, sk::train::FitControl&) const { *last = Counts::now(); }
};

template <class Network, class Policy> void fit(const Policy& policy, int threads, Watch watch) {
  ModelOf<Network> model{sk::Seed{7}};
  const auto all = sk::data::synthetic_digits(1300, sk::Seed{3});
  const long values = ModelOf<Network>::input::count;
  std::vector<float> x(static_cast<std::size_t>(1300 * values));
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5f;
  for (long i = 0; i < 1300; ++i) labels.push_back(all.label(i) % static_cast<int>(ModelOf<Network>::output_extents.count()));
  const auto set = sk::data::from_tensors(x, ModelOf<Network>::input::extents, labels);
  const auto train = set.slice(0, 1000), test = set.slice(1000, 1300);
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9}, policy};
  sk::FitOptions o{.epochs = 3, .batch = 128, .validate = test, .record_steps = true, .progress = false, .threads = threads};
  o.callbacks = {watch};
  trainer.fit(train, o);
}

void say(Report& report, const std::string& what, int threads, const Counts& c) {
  for (const auto& [name, count] : {std::pair{"page faults", c.faults}, std::pair{"allocations", c.allocations},
                                    std::pair{"primitives made", c.primitives}}) {
    Line l{.metric = what + ": " + name, .ours = static_cast<double>(count), .unit = "", .must = {0.0}, .threads = threads};
    if (std::string(name) == "allocations" && count > 0)
      l.add("of these " + number(static_cast<double>(c.inside_onednn)) + " inside oneDNN");
    report.add(l);
  }
}
template <class Network> void alone(Report& report, const char* name, int threads) {
  Counts first, last;
  fit<Network>(sk::parallel::SingleProcess{}, threads, {&first, &last, 1});
  say(report, name, threads, last - first);
}
}  // namespace

int main(int argc, char** argv) {
  Report report("steady_state", options(argc, argv));
  report.say("3 epochs of 8 batches, the last of 104 samples, each with a validation; counted after the first step");
  fault_in_program();
  for (int threads : {1, 2}) {
    alone<LeNet>(report, "LeNet", threads);
    alone<Mlp>(report, "MLP", threads);
    alone<Strided>(report, "stride 2", threads);
  }
  Counts first[2], last[2];
  sk::spawn(2, [&](sk::ThreadComm& world) {  // from the second step: a rank may be behind the other at the end of the first
    fit<LeNet>(sk::parallel::DataParallel{world}, 1, {&first[world.rank()], &last[world.rank()], 2});
  });
  say(report, "LeNet, 2 ranks that are threads", 0, last[0] - first[0]);
  return report.finish();
}
