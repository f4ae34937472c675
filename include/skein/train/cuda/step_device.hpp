// SPDX-License-Identifier: Apache-2.0
// A training step on a GPU: batches that are copied ahead, the step as one CUDA graph for each kind of step (captured after one
// that was launched kernel by kernel, then replayed with new arguments), and sums that the host fetches when it wants them.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../nn/cuda/step_memory.hpp"
#include "../../ops/step_scale.hpp"
#include "../step/step_device.hpp"
#include "batch_upload.hpp"
#include "captured_steps.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// The end of a step in one kernel: the factor of the gradients, and, of a step that is not skipped, sums to the epoch's totals.
template <class Scalar> struct EndStep {
  ops::WriteSums<Scalar> write{};  // sums of this rank alone: to the tail first
  ops::AddTail<double> add_sums{};
  ops::AddTail<Scalar> add_tail{};
  ops::StepScaleCall<Scalar> scale{};
  SKEIN_HOST_DEVICE void operator()(long) const {
    for (long i = 0; write.sums && i < 3; ++i) write(i);
    scale(0);
    for (long i = 0; !scale.scale->skip && i < 3; ++i) {
      if (add_sums.tail) add_sums(i);
      else add_tail(i);
    }
  }
};

/// What device memory of a step the host may ask for later.
template <class Scalar> struct FetchSums {
  const double* sums = nullptr;  // of this rank, or
  const Scalar* tail = nullptr;  // of all ranks
  std::uint64_t step = 0;
};
}  // namespace detail

template <class Scalar> class StepDevice<Scalar, Cuda> {
 public:
  /// The sums of a step that may still run: whoever asks for them waits. Ask before the next step, which overwrites them.
  class Sums {
   public:
    Sums() = default;
    /// Throws CommError where an exchange of the step was given up: what it has left is nobody's.
    operator nn::LossSums() const {
      if (!device_) return {};
      const nn::LossSums sums = device_->fetch(from_);
      check_(state_);
      return sums;
    }
    /// Waits. Mean loss of the step.
    double mean() const { return nn::LossSums(*this).mean(); }

   private:
    friend class StepDevice;
    template <class PolicyState> Sums(const StepDevice* device, detail::FetchSums<Scalar> from, const PolicyState& state)
        : device_(device), from_(from), state_(&state),
          check_([](const void* s) { static_cast<const PolicyState*>(s)->check(); }) {}
    const StepDevice* device_ = nullptr;
    detail::FetchSums<Scalar> from_{};
    const void* state_ = nullptr;
    void (*check_)(const void*) = nullptr;
  };
  static constexpr int held = BatchUpload<Scalar>::held;
  static data::HostMemory host_memory() { return BatchUpload<Scalar>::host_memory(); }

  /// The memory of a training, the optimizer's too, is there when this returns: another thread may make the first step.
  StepDevice(Cuda where, const BatchRows& rows)
      : where_(where), upload_(where, rows), totals_(4, where), squares_(1, where), scale_(1, where) {
    cuda::synchronize(where);
  }

  /// Captured steps are void where batches have no room yet.
  void reserve(const BatchRoom& n) {
    if (upload_.has_room(n)) return;
    forget_graphs();
    upload_.reserve(n);
  }
  /// In one of two slots, by turns: of steps and of evaluations each for themselves, since a rank may evaluate alone, and the
  /// graph of a step that ranks make together has the addresses of its slot. A batch that is on the device is read where it is,
  /// but in such a step.
  template <class Given> BatchView<Scalar, Cuda> upload(const Given& given, BatchUse use) {
    const auto& batch = batch_view<Scalar, Cuda>(given);
    ++step_;
    uploaded_ = std::same_as<DeviceOf<Given>, Cpu> || use == BatchUse::common_step;
    evaluates_ = use == BatchUse::evaluation;
    if constexpr (std::same_as<DeviceOf<Given>, Cuda>)
      if (!uploaded_) return batch;
    reserve(upload_.room_for(batch));
    return upload_.upload(batch, (evaluates_ ? evaluated_ : trained_) & 1);
  }
  /// A call that threw before has the turn of its slot again.
  void finish() {
    if (uploaded_) upload_.finish();
    ++(evaluates_ ? evaluated_ : trained_);
  }

  /// Launches a step, a StepLaunch (step_launch.hpp): kernel by kernel, or, if it is wanted, as a graph.
  template <class Launch> void run(nn::StepMemory<Cuda>& memory, bool wanted, const Launch& launch) {
    mode_ = cuda::ArgumentMode::count;
    counted_ = 0;
    if (!wanted) {
      launch.begin();
      return launch.all_stages();
    }
    const CapturedStepKey key = launch.key();
    KindOfStep* const steps = captured_.kind_of(key);
    CapturedStep* const c = steps && steps->launched && !steps->refused ? captured_.find(key, step_) : nullptr;
    if (!c) {
      launch.begin();
      launch.all_stages();
      if (steps) steps->launched = true, steps->bytes = std::max(steps->bytes, counted_);
      return;
    }
    const nn::StepMemory<Cuda>::Hold held(memory);
    if (!c->graph) {
      launch.prepare();
      if (memory.arguments().reserve(std::max(steps->bytes, some_arguments), where_)) captured_.forget_all_but(*c);
      launch.begin();
      mode_ = cuda::ArgumentMode::capture;
      if (!captured_.capture(*c, *steps, launch)) {  // from now on as before
        mode_ = cuda::ArgumentMode::count;
        memory.upload();
        return launch.all_stages();
      }
    } else {
      launch.begin();
      mode_ = cuda::ArgumentMode::replay;
      launch.host_arguments();
    }
    memory.upload();
    c->graph.launch();
    ++replays_;
  }
  /// Around the optimizer: its arguments go into the block of the captured step, or are counted for one.
  auto arguments(nn::StepMemory<Cuda>& memory) { return Scope(*this, memory.arguments()); }
  /// Graphs are void, and are captured anew. Ranks that launch theirs together do so at the same steps: NCCL wants graphs of one
  /// capture.
  void forget_graphs() { captured_.forget_graphs(); }
  /// Steps begin anew, too, kernel by kernel: on all ranks, as whoever calls this does.
  void forget() { captured_.forget(); }

  // ---- the end of a step, for the TrainStep ------------------------------------------------------------------------------
  ops::StepScale* scale() { return scale_.data(); }
  /// Where the sum of the squares of the gradients belongs.
  double* squares() { return squares_.data(); }
  /// `sums`: of this rank alone, for the totals; null where those take the tail's, which has the sums over all ranks if
  /// `exchanged`. Makes scale().
  void finish_sums(const double* sums, bool exchanged, Scalar* tail, ops::StepScaleCall<Scalar> call) {
    call.tail = tail;
    call.scale = scale_.data();
    detail::EndStep<Scalar> end;
    if (sums && !exchanged) end.write = {sums, tail};
    if (sums) end.add_sums = {sums, totals_.data()};
    end.add_tail = {tail, totals_.data()};
    end.scale = call;
    ops::for_each<Cuda>(1, end);
  }
  template <class PolicyState> Sums result(const double* sums, const Scalar* tail, const PolicyState& state) const {
    return Sums(this, {sums, tail, step_}, state);
  }
  /// Blocks: what the last update was made with.
  ops::StepScale read_scale() const {
    ops::StepScale s;
    Memory<Cuda>::to_host(&s, scale_.data(), sizeof s, where_);
    return s;
  }
  /// Blocks: the norm of the last gradients that were clipped. Throws CommError where their exchange was given up.
  template <class PolicyState> double norm(const PolicyState& state) const {
    const double norm = read_scale().norm;
    state.check();
    return norm;
  }

  /// Blocks: sums of all updates since set_totals().
  nn::LossSums totals() const {
    double t[3];
    Memory<Cuda>::to_host(t, totals_.data(), sizeof t, where_);
    return {t[0], t[1], t[2]};
  }
  void set_totals(const nn::LossSums& s) {
    const double t[3] = {s.loss, s.weight, s.correct};
    Memory<Cuda>::from_host(totals_.data(), t, sizeof t, where_);
  }

  const std::string& note() const { return captured_.note(); }
  void set_note(std::string note) { captured_.set_note(std::move(note)); }
  /// Graphs that are there, and how often one was launched.
  std::size_t graphs() const { return captured_.graphs(); }
  long replays() const { return replays_; }

 private:
  static constexpr std::size_t some_arguments = 16 * 1024;  // bytes: more than steps of most networks, so that the block stays
  class Scope {
   public:
    Scope(StepDevice& d, cuda::Arguments& block) : device_(d), inner_(block, d.mode_) {}
    ~Scope() { device_.counted_ = inner_.counted(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StepDevice& device_;
    cuda::ArgumentScope inner_;
  };

  nn::LossSums fetch(const detail::FetchSums<Scalar>& from) const {
    if (from.step != step_)
      throw ArgumentError("the sums of a step were asked for after the next one: convert them to nn::LossSums before");
    if (from.sums) {
      double s[3];
      Memory<Cuda>::to_host(s, from.sums, sizeof s, where_);
      return {s[0], s[1], s[2]};
    }
    Scalar s[3];
    Memory<Cuda>::to_host(s, from.tail, sizeof s, where_);
    return {static_cast<double>(s[0]), static_cast<double>(s[1]), static_cast<double>(s[2])};
  }

  Cuda where_;
  BatchUpload<Scalar> upload_;
  Arena<double, Cuda> totals_, squares_;
  Arena<ops::StepScale, Cuda> scale_;
  CapturedSteps captured_;
  cuda::ArgumentMode mode_ = cuda::ArgumentMode::count;
  std::size_t counted_ = 0;
  std::uint64_t step_ = 0;
  std::size_t trained_ = 0, evaluated_ = 0;  // batches that were brought for either
  long replays_ = 0;
  bool uploaded_ = false, evaluates_ = false;
};

}  // namespace skein::inline SKEIN_ABI::train
