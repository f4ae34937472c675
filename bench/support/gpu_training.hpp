// SPDX-License-Identifier: Apache-2.0
// A training step on a GPU as a candidate: the batch lies on the device, the step is the library's own (one CUDA graph). The
// peer, eager and with CUDA graphs, has the same weights and samples; a time is accepted only after the losses of the first steps
// agree.
#pragma once
#include "gpu.hpp"
#include "training.hpp"

namespace bench {

template <class Network, class Loss, class Precision = sk::precision::fp32> class GpuTraining {
 public:
  using Model = sk::Model<Network, typename Network::input, sk::Cuda, Precision>;
  using TrainStep = sk::train::TrainStep<Model, Loss, sk::optim::Sgd, sk::parallel::SingleProcess>;

  GpuTraining(const Samples<Network, Loss>& samples, sk::optim::Sgd sgd)
      : sgd_(sgd), x_(samples.staged.size()), labels_(samples.labels.size()), targets_(samples.staged_targets.size()) {
    const sk::data::Batch<float> host = samples.batch(0, samples.count, samples.count);
    copy(x_, samples.staged.data());
    copy(labels_, samples.labels.data());
    copy(targets_, samples.staged_targets.data());
    batch_.x = x_.data(), batch_.pitch = host.pitch, batch_.sample = host.sample;
    if (host.labels) batch_.labels = labels_.data();
    if (host.targets)
      batch_.targets = targets_.data(), batch_.target_pitch = host.target_pitch, batch_.target_length = host.target_length;
    batch_.count = host.count, batch_.global_count = host.global_count;
    reset();
  }
  void reset() {
    train_step_.reset();
    model_ = std::make_unique<Model>(sk::Seed{7});
    train_step_ = std::make_unique<TrainStep>(*model_, Loss{}, sgd_, sk::parallel::SingleProcess{});
    train_step_->reserve({.capacity = batch_.count});
    train_step_->executor().prepare(batch_.count);
  }
  void step(double factor = 1e-3) { (void)train_step_->step(batch_, {.lr_factor = factor}); }
  Candidate candidate() {
    return gpu_candidate([this] { step(); });
  }
  std::vector<double> losses(int k) {
    reset();
    std::vector<double> v;
    for (int i = 0; i < k; ++i) v.push_back(nn::LossSums(train_step_->step(batch_, {.lr_factor = 1})).mean());
    return v;
  }
  std::string note() const { return train_step_->device().note(); }

 private:
  template <class T> static void copy(sk::Arena<T, sk::Cuda>& to, const T* from) {
    if (to.size()) sk::Memory<sk::Cuda>::from_host(to.data(), from, to.size() * sizeof(T));
  }
  sk::optim::Sgd sgd_;
  sk::Arena<float, sk::Cuda> x_;
  sk::Arena<std::int32_t, sk::Cuda> labels_;
  sk::Arena<float, sk::Cuda> targets_;
  sk::data::Batch<float, sk::Cuda> batch_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<TrainStep> train_step_;
};

/// A step against PyTorch eager and against PyTorch with CUDA graphs, each with its goal.
template <class Network, class Loss, class Precision = sk::precision::fp32>
bool measure_gpu_step(Report& report, const std::string& what, long batch, sk::optim::Sgd sgd, Goal eager_must, Goal eager_hope,
                      Goal graph_must, Goal graph_hope, const std::string& precision = "fp32", double tolerance = 1e-4) {
  const Samples<Network, Loss> samples(batch);
  GpuTraining<Network, Loss, Precision> ours(samples, sgd);
  const Exchange exchange;
  const ModelOf<Network> host{sk::Seed{7}};
  std::vector<std::string> arguments = hand_over(exchange, samples, host, sgd);
  arguments.insert(arguments.end(), {"--precision", precision});
  const std::vector<double> curve = ours.losses(10);
  ours.reset();
  const Candidate candidate = ours.candidate();
  bool right = true;
  constexpr bool images = ModelOf<Network>::input::rank == 3;
  for (const auto& [option, must, hope] :
       {std::tuple{std::string("--eager"), eager_must, eager_hope}, {std::string("--graphs"), graph_must, graph_hope}}) {
    Line l{.metric = what + ", against " + option.substr(2), .must = must, .hope = hope};
    l.add(gpu_name());
    if (const std::string words = ours.note(); !words.empty()) l.add(words);
    std::unique_ptr<Peer> peer = gpu_peer("training.py", arguments, {1, false, images, false, option});
    const std::string wrong = peer ? difference(curve, peer->losses(10), tolerance) : "";
    right &= against_on_gpu(l, candidate, peer.get(), wrong, report.quick());
    report.add(l);
  }
  return right;
}

}  // namespace bench
