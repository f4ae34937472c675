// SPDX-License-Identifier: Apache-2.0
// A training step on a GPU: staged batches, the step as one CUDA graph for each kind of step (captured after one that was
// launched kernel by kernel, then replayed with new arguments), and sums that the host fetches when it wants them.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../device/cuda/captured_graph.hpp"
#include "../../nn/cuda/step_memory.hpp"
#include "../../ops/step_scale.hpp"
#include "../step/step_device.hpp"
#include "batch_upload.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// The end of a step in one kernel: the factor of the gradients, and, of a step that is not skipped, sums to the epoch's totals.
template <class Scalar> struct SettleStep {
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
    operator nn::LossSums() const { return device_ ? device_->fetch(from_) : nn::LossSums{}; }
    /// Waits. Mean loss of the step.
    double mean() const { return nn::LossSums(*this).mean(); }

   private:
    friend class StepDevice;
    Sums(const StepDevice* device, detail::FetchSums<Scalar> from) : device_(device), from_(from) {}
    const StepDevice* device_ = nullptr;
    detail::FetchSums<Scalar> from_{};
  };
  static constexpr int held = BatchUpload<Scalar>::held;
  static data::HostMemory host_memory() { return BatchUpload<Scalar>::host_memory(); }

  /// The memory of a training, the optimizer's too, is there when this returns: another thread may make the first step.
  explicit StepDevice(Cuda where) : where_(where), upload_(where), totals_(4, where), squares_(1, where), scale_(1, where) {
    cuda::synchronize(where);
  }

  void reserve(long scalars, long tokens, long labels, long targets) {
    if (upload_.has_room(scalars, tokens, labels, targets)) return;
    forget_graphs();
    upload_.reserve(scalars, tokens, labels, targets);
  }
  template <class Given> decltype(auto) upload(const Given& given) {
    const auto& batch = batch_view<Scalar, Cuda>(given);
    ++step_;
    uploaded_ = std::same_as<DeviceOf<Given>, Cpu>;
    if constexpr (std::same_as<DeviceOf<Given>, Cuda>) {
      return BatchView<Scalar, Cuda>(batch);
    } else {
      const long values = batch.count * batch.pitch;
      reserve(batch.tokens ? 0 : values, batch.tokens ? values : 0, batch.labels ? batch.count * batch.labels_each : 0,
              batch.targets ? batch.count * batch.target_pitch : 0);
      return upload_.upload(batch);
    }
  }
  void finish() {
    if (uploaded_) upload_.finish();
  }

  template <class Kind, class Begin, class All, class Host, class Refusing>
  void run(nn::StepMemory<Cuda>& memory, bool wanted, Kind&& kind, Begin&& begin, All&& all, Host&& host, Refusing&& refusing) {
    mode_ = cuda::ArgumentMode::count;
    counted_ = 0;
    if (!wanted) {
      begin();
      return all();
    }
    if (workspace_ && cuda::workspace().data() != workspace_) {  // it has grown: graphs know the old one
      for (auto& c : captured_) c->graph = {};
      workspace_ = nullptr;
    }
    const CapturedStepKey key = kind();
    Alike* const steps = alike(key);
    Captured* const c = steps && steps->launched && !steps->refused ? captured(key) : nullptr;
    if (!c) {
      begin();
      all();
      if (steps) steps->launched = true, steps->bytes = std::max(steps->bytes, counted_);
      return;
    }
    const nn::StepMemory<Cuda>::Hold held(memory);
    c->used = step_;
    if (!c->graph) {
      if (memory.arguments().reserve(steps->bytes, where_)) forget_all_but(*c);
      begin();
      mode_ = cuda::ArgumentMode::capture;
      if (!capture(*c, *steps, all, refusing)) {  // from now on as before
        mode_ = cuda::ArgumentMode::count;
        memory.upload();
        return all();
      }
    } else {
      begin();
      mode_ = cuda::ArgumentMode::replay;
      host();
    }
    memory.upload();
    c->graph.launch();
    ++replays_;
  }
  /// Around the optimizer: its arguments go into the block of the captured step, or are counted for one.
  auto arguments(nn::StepMemory<Cuda>& memory) { return Scope(*this, memory.arguments()); }
  /// Graphs are void, and steps begin anew: on all ranks, as whoever calls this does.
  void forget() {
    forget_graphs();
    alike_.clear();
  }

  // ---- the end of a step, for the TrainStep ------------------------------------------------------------------------------
  ops::StepScale* scale() { return scale_.data(); }
  /// Where the sum of the squares of the gradients belongs.
  double* squares() { return squares_.data(); }
  /// `sums`: of this rank alone, for the totals; null where those take the tail's, which has the sums over all ranks if
  /// `exchanged`. Makes scale().
  void finish_sums(const double* sums, bool exchanged, Scalar* tail, ops::StepScaleCall<Scalar> call) {
    call.tail = tail;
    call.scale = scale_.data();
    detail::SettleStep<Scalar> end;
    if (sums && !exchanged) end.write = {sums, tail};
    if (sums) end.add_sums = {sums, totals_.data()};
    end.add_tail = {tail, totals_.data()};
    end.scale = call;
    ops::for_each<Cuda>(1, end);
  }
  Sums result(const double* sums, const Scalar* tail) const { return Sums(this, {sums, tail, step_}); }
  /// Blocks: what the last update was made with.
  ops::StepScale read_scale() const {
    ops::StepScale s;
    Memory<Cuda>::to_host(&s, scale_.data(), sizeof s, where_);
    return s;
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

  const std::string& note() const { return note_; }
  void set_note(std::string note) { note_ = std::move(note); }
  /// Graphs that are there, and how often one was launched.
  std::size_t graphs() const {
    std::size_t n = 0;
    for (const auto& c : captured_) n += static_cast<bool>(c->graph);
    return n;
  }
  long replays() const { return replays_; }

 private:
  static constexpr std::size_t most_kinds = 32;  // more are not steps that come again
  /// Steps that are alike for all ranks: what all of them decide by.
  struct Alike {
    CapturedStepKey one{};
    bool launched = false, refused = false, agreed = false;  // before, kernel by kernel; to be captured; that all have captured
    std::size_t bytes = 0;                                   // of the block of arguments
  };
  struct Captured {
    CapturedStepKey kind{};
    std::uint64_t used = 0;  // at which step
    cuda::CapturedGraph graph;
  };
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

  /// Null: there are too many.
  Alike* alike(const CapturedStepKey& kind) {
    for (Alike& a : alike_)
      if (a.one.alike(kind)) return &a;
    if (alike_.size() == most_kinds) return nullptr;
    return &alike_.emplace_back(Alike{.one = kind});
  }
  /// Null where there are too many, and the step is this rank's alone: how many there are, it alone knows. Of an exchange the
  /// one that was used longest ago goes.
  Captured* captured(const CapturedStepKey& kind) {
    for (const auto& c : captured_)
      if (c->kind == kind) return c.get();
    if (captured_.size() == most_kinds) {
      if (!kind.exchange) return nullptr;
      captured_.erase(std::min_element(captured_.begin(), captured_.end(), [](auto& a, auto& b) { return a->used < b->used; }));
      note_ = "steps are captured again and again, since their batches lie at more than " + std::to_string(most_kinds) +
              " places of the device's memory: reuse them, or set StepOptions::graph = false on all ranks";
    }
    captured_.push_back(std::make_unique<Captured>());
    captured_.back()->kind = kind;
    return captured_.back().get();
  }
  /// False where it is refused, by this rank or another one: a layer waits for the device, say. All ranks of an exchange launch
  /// graphs, or none does.
  template <class All, class Refusing> bool capture(Captured& c, Alike& steps, All& all, Refusing& refusing) {
    std::string why;
    try {
      c.graph = cuda::CapturedGraph::capture(all);
      workspace_ = cuda::workspace().data();
    } catch (const DeviceError& e) {
      why = e.what();
      if (steps.one.exchange && steps.agreed)
        throw DeviceError("a step that all ranks had captured cannot be captured again on this one: " + why +
                          "; set StepOptions::graph = false on all ranks");
    }
    if (steps.one.exchange && !steps.agreed) {
      const int rank = refusing(!why.empty());
      steps.agreed = rank < 0;
      if (rank >= 0 && why.empty()) why = "rank " + std::to_string(rank) + "'s were refused";
    }
    if (why.empty()) return true;
    steps.refused = true;
    c.graph = {};
    note_ = "steps are launched kernel by kernel, since they cannot be captured: " + why;
    return false;
  }
  /// Memory has moved, of this rank alone perhaps.
  void forget_graphs() {
    captured_.clear();
    workspace_ = nullptr;
  }
  /// The block of arguments has moved: other graphs read the old one.
  void forget_all_but(const Captured& one) {
    for (auto& c : captured_)
      if (c.get() != &one) c->graph = {};
  }
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
  std::vector<Alike> alike_;
  std::vector<std::unique_ptr<Captured>> captured_;
  const void* workspace_ = nullptr;
  cuda::ArgumentMode mode_ = cuda::ArgumentMode::count;
  std::size_t counted_ = 0;
  std::uint64_t step_ = 0;
  long replays_ = 0;
  bool uploaded_ = false;
  std::string note_;
};

}  // namespace skein::inline SKEIN_ABI::train
