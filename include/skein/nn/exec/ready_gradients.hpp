// SPDX-License-Identifier: Apache-2.0
// ReadyGradients: what of a pass's gradients is final. Workers say how far they are, from the back of the arena on; worker 0 sums
// over the workers what all of them have finished and tells the sink, so a layer's gradient reaches a policy by two calls: the
// layer's to this, and this one's to the sink. The last scalars, the tail, are the sums of the batch, and go first.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>

#include "../../ops/step_scale.hpp"
#include "../step_memory.hpp"
#include "executor_memory.hpp"
#include "gradient_sink.hpp"
#include "sum_workers.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// values[i] *= factor.
template <class Scalar> struct TimesFactor {
  Scalar* values;
  Scalar factor;
  constexpr void operator()(long i) const { values[i] *= factor; }
};

/// How far each worker is with its gradients, and what all of them have finished.
template <class Memory> class ReadyGradients {
 public:
  using Scalar = typename Memory::Scalar;
  using Device = typename Memory::Device;
  using State = typename Memory::State;

  /// Both memories stay where they are.
  ReadyGradients(Memory& memory, StepMemory<Device>& step_memory)
      : memory_(&memory), step_memory_(&step_memory), threads_(memory.threads()),
        progress_(std::make_unique<Progress[]>(static_cast<std::size_t>(threads_))) {
    for (int w = 0; w < threads_; ++w) memory.state(w).run.context.hook = this;
  }

  /// Worker 0, before its backward.
  void begin(const ExecutorSinks& sinks) {
    sinks_ = sinks;
    reported_ = stored + gradient_tail;
    summed_ = false;
  }
  /// Every worker: its layers report to this object what has a sink. Depth-first, no gradient is final before the end.
  void listen(State& s, const ExecutorSinks& sinks) {
    s.run.context.ready_hook = sinks.gradients && !memory_->depth_first() ? &ReadyGradients::on_ready : nullptr;
    s.run.context.statistics_hook = sinks.statistics ? &ReadyGradients::on_statistics : nullptr;
  }
  /// After the pass: the sum of the gradients, which was divided by `expected`, becomes that of the mean by weights. Waits.
  void divide_by(double weight, double expected) {
    if (weight == expected || !(weight > 0)) return;
    const long first = memory_->gradient_arrays().unwritten();
    ops::for_each<Device>(stored - first,
                          TimesFactor<Scalar>{memory_->gradients(0) + first, static_cast<Scalar>(expected / weight)});
    step_memory_->wait();
  }
  /// Every worker: all of its gradients are there.
  void worker_finished(const Worker& w) { progress(w.index).store(0, std::memory_order_release); }
  /// Worker 0, after the others have arrived, before a barrier: reports what has not been reported.
  void finish() {
    if (sinks_.gradients) {
      advance();
      summed_ = true;
    }
    forget();
  }
  /// What the workers have reported is of no call any more.
  void forget() {
    for (int w = 0; w < threads_; ++w) progress(w).store(nothing, std::memory_order_relaxed);
  }

  /// Every worker, after all have finished and a barrier: a part of the arena becomes the sum over workers.
  void sum_workers(const Worker& w) { nn::sum_workers(*memory_, w); }
  /// The other workers' gradients of the last call are in worker 0's already.
  bool summed() const { return summed_; }
  void set_summed() { summed_ = true; }

  /// Sums of loss, weight and correct answers of the last call (or accumulated calls). Waits for a device that has them.
  LossSums sums() const {
    if constexpr (on_host<Device>) {
      LossSums all;
      for (int w = 0; w < threads_; ++w) all += memory_->state(w).sums;
      return all;
    } else {
      return step_memory_->read_sums();
    }
  }

 private:
  static constexpr long stored = Memory::sizes.stored, nothing = stored + 1;
  struct alignas(64) Progress {        // of one worker
    std::atomic<long> begin{nothing};  // gradients at and behind this offset are final
  };

  std::atomic<long>& progress(int worker) { return progress_[static_cast<std::size_t>(worker)].begin; }

  static void on_ready(void* self, const Context<Scalar, Device>& context, long begin) {
    ReadyGradients& r = *static_cast<ReadyGradients*>(self);
    r.progress(context.worker.index).store(begin, std::memory_order_release);
    if (context.worker.index == 0) r.advance();
  }
  // All workers stand in a barrier: what is ready is begun now, so that every rank makes its calls in the same order.
  static void on_statistics(void* self, double* values, long n) {
    ReadyGradients& r = *static_cast<ReadyGradients*>(self);
    if (r.sinks_.gradients && r.threads_ > 1 && !r.memory_->depth_first()) r.advance();
    r.sinks_.statistics->reduce_statistics(values, n);
  }
  /// Worker 0: sums over workers what all of them have finished, and tells the sink.
  void advance() {
    long ready = 0;
    for (int w = 0; w < threads_; ++w) ready = std::max(ready, progress(w).load(std::memory_order_acquire));
    if (ready < reported_ && ready <= stored) {
      if (reported_ > stored) write_tail();
      if (threads_ > 1)
        for (const plan::Range& r : memory_->summed_ranges())
          add_workers(*memory_, std::max(r.begin, ready), std::min(r.end, reported_));
      const long end = reported_;
      reported_ = ready;
      sinks_.gradients->gradient_ready(ready, end);
    } else {
      sinks_.gradients->gradient_ready(reported_, reported_);
    }
  }
  void write_tail() {
    Scalar* tail = memory_->gradients(0) + stored;
    if constexpr (on_host<Device>) {
      const LossSums all = sums();
      tail[0] = static_cast<Scalar>(all.loss);
      tail[1] = static_cast<Scalar>(all.weight);
      tail[2] = static_cast<Scalar>(all.correct);
    } else {
      ops::write_sums<Device>(step_memory_->sums(), tail);
    }
  }

  Memory* memory_;
  StepMemory<Device>* step_memory_;
  int threads_;
  std::unique_ptr<Progress[]> progress_;
  ExecutorSinks sinks_{};
  long reported_ = 0;
  bool summed_ = false;
};

}  // namespace skein::inline SKEIN_ABI::nn
