// SPDX-License-Identifier: Apache-2.0
// HostUpdate: the optimizer's part of a training step on the host, as its workers run it side by side: overflows, clipping, the
// stages of a chain, and the pass that updates. Where nobody asks for more, that is one pass in which the workers' gradients are
// summed as they are read.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "../../core/workers.hpp"
#include "../../ops/cpu/finite.hpp"
#include "../../optim/state.hpp"
#include "../../parallel/concepts.hpp"
#include "../../plan/virtual_shards.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What a step asks of its update.
template <class Scalar> struct UpdateRequest {
  Scalar* parameters = nullptr;
  std::int64_t step = 1;
  double lr = 0;
  double scale = 1;        ///< of the sum of the workers' gradients
  double clip = 0;         ///< the norm to clip by; 0: none
  bool exchanged = false;  ///< worker 0's gradients are those of all workers and ranks
  bool look = false;       ///< for gradients that are not finite: with one, nothing is updated
};

/// Parameters to a transform of tensors; tensor_update.hpp comes with the transform.
template <class Scalar, class Entry> auto tensor_update(const Entry& e, Scalar* parameters, Scalar* gradients) {
  optim::TensorUpdate<Scalar> t;
  const long columns = e.extents.last(), rows = columns > 0 ? e.extents.count() / columns : 0;
  t.extents = e.extents;
  t.decay = e.decay;
  t.offset = e.offset;
  t.gradient = {gradients + e.offset, {rows, columns}, {row_pitch(columns), 1}};
  t.value = {parameters + e.offset, {rows, columns}, {row_pitch(columns), 1}};
  return t;
}

template <class Model, class Optimizer, class PolicyState> class HostUpdate {
 public:
  using Scalar = typename Model::Scalar;
  using Bound = optim::BoundOptimizer<Optimizer, Scalar, Cpu>;
  static constexpr int virtual_shards = PolicyState::virtual_shards;

  /// Memory for an executor's workers.
  template <class Executor> void reserve(Executor& executor) {
    const int n = executor.workers().size();
    gradients_.clear();
    for (int w = 0; w < (virtual_shards > 0 ? 1 : n); ++w) gradients_.push_back(executor.gradients(w));
    whole_gradient_ = executor.gradients(0);
    numbers_.assign(static_cast<std::size_t>(virtual_shards > 0 ? std::max(n, norm_pieces) : n), 0);
    find_segments(executor.summed_ranges());
  }

  /// Every worker of the region, after all gradients are there.
  void run(const Worker& w, const Bound& optimizer, PolicyState& policy, const UpdateRequest<Scalar>& request) {
    OfWorker step(*this, w, optimizer, policy, request);
    if (request.look && step.overflows()) return;
    if (request.clip > 0) {
      const double norm = step.norm();
      step.multiply(optim::ClipNorm{static_cast<float>(request.clip)}(norm));
    }
    if constexpr (optim::has_stages<Optimizer>) optimizer.optimizer().run_stages(step);
    step.update();
  }

  std::span<const Scalar* const> gradients() const { return gradients_; }
  /// Of the last step that took a norm.
  double norm() const { return norm_; }
  /// Did the last step that looked find a gradient that is not finite?
  bool overflowed() const { return overflowed_; }

 private:
  static constexpr int norm_pieces = 64;  // of virtual shards: the norm must not depend on who adds it up
  struct Segment {
    plan::Range range{};
    bool summed = true;  // over workers; else worker 0 has the whole gradient
  };

  /// The step as one worker has it: what a chain's stages work with.
  class OfWorker {
   public:
    OfWorker(HostUpdate& all, const Worker& w, const Bound& optimizer, PolicyState& policy, const UpdateRequest<Scalar>& request)
        : all_(all), w_(w), optimizer_(optimizer), policy_(policy), request_(request), one_array_(request.exchanged) {
      call_.step = request.step;
      call_.lr = request.lr;
      call_.gradient_scale = request.scale;
      call_.gradients = all.gradients_.data();
      const plan::Range own = policy.owned(Model::sizes.stored);
      const auto slice = w.slice(own.end - own.begin, 16);
      begin_ = own.begin + slice.first;
      end_ = own.begin + slice.second;
    }

    /// Is the gradient one array as it is, of all samples and scaled?
    bool whole() const { return whole_ && call_.gradient_scale == 1; }
    void multiply(double factor) { call_.gradient_scale *= factor; }
    /// Every worker: the norm of the gradient as it stands, of all that is not frozen, over the ranks that own a part.
    double norm() {
      if (std::exchange(numbers_read_, true)) w_.barrier();  // others may still add up those of the norm before
      if constexpr (virtual_shards > 0) {                    // in pieces of the arena, whoever computes them
        for (auto [p, last] = w_.slice(norm_pieces); p < last; ++p)
          all_.numbers_[static_cast<std::size_t>(p)] = optimizer_.sum_of_squares(call_, piece(p), piece(p + 1));
      } else {
        double sum = 0;
        each([&](long begin, long end) { sum += optimizer_.sum_of_squares(call_, begin, end); });
        all_.numbers_[static_cast<std::size_t>(w_.index)] = sum;
      }
      w_.barrier();
      double squares = 0;
      for (double n : all_.numbers_) squares += n;
      if constexpr (parallel::OwnsPart<PolicyState>) squares = over_ranks(squares);
      const double norm = std::sqrt(squares);
      if (w_.index == 0) all_.norm_ = norm;
      return norm;
    }
    /// Every worker: write(call, into) puts the gradient of a part of the arena into one array.
    template <class Write> void make_whole(const Write& write) {
      each([&](long begin, long end) {
        optim::for_each_range(optimizer_.ranges(), optimizer_.complete(request_.parameters, call_, begin, end),
                              [&](const auto& part) { write(part, all_.whole_gradient_); });
      });
      call_.gradient_scale = 1;
      one_array_ = whole_ = true;
      w_.barrier();
    }
    /// Every worker: visit(parameter) for those that are its own, and waits for the others.
    template <class Visit> void each_tensor(const Visit& visit) {
      const auto entries = optimizer_.entries();
      for (std::size_t k = 0; k < entries.size(); ++k) {
        const plan::Entry& e = entries[k];
        if ((e.offset + e.stored / 2) * w_.count / Model::sizes.stored != w_.index) continue;
        optim::for_each_range(optimizer_.ranges(), optimizer_.complete(request_.parameters, call_, e.offset, e.offset + e.stored),
                              [&](const auto& part) { visit_one(part, k, visit); });
      }
      w_.barrier();
    }
    /// The last pass.
    void update() {
      each([&](long begin, long end) { optimizer_.update(request_.parameters, call_, begin, end); });
    }
    /// Every worker: is any gradient of the step not finite. After an exchange all ranks see the same gradients, hence the same
    /// answer; without one they agree.
    bool overflows() {
      bool finite = true;
      each([&](long begin, long end) {
        finite = finite && ops::cpu::all_finite(call_.gradients, call_.gradient_count, begin, end);
      });
      all_.numbers_[static_cast<std::size_t>(w_.index)] = finite ? 0 : 1;
      w_.barrier();
      if (w_.index == 0) {
        double bad[1] = {0};
        for (double n : all_.numbers_) bad[0] += n;
        if (!request_.exchanged || parallel::OwnsPart<PolicyState>) policy_.reduce(bad);
        all_.overflowed_ = bad[0] > 0;
      }
      w_.barrier();
      return all_.overflowed_;
    }

   private:
    /// visit(begin, end) for this worker's part, with the number of arrays to be summed in call_.
    template <class Visit> void each(const Visit& visit) {
      for (const Segment& s : all_.segments_) {
        const long begin = std::max(begin_, s.range.begin), end = std::min(end_, s.range.end);
        if (begin >= end) continue;
        call_.gradient_count = s.summed && !one_array_ ? w_.count : 1;
        visit(begin, end);
      }
    }
    template <class Call, class Visit> void visit_one(const Call& part, std::size_t k, const Visit& visit) {
      const plan::Entry& e = optimizer_.entries()[k];
      auto t = tensor_update<Scalar>(e, request_.parameters, all_.whole_gradient_);
      t.name = optimizer_.name(k);
      t.lr = part.lr;
      t.step = part.step;
      t.state_arrays = part.state;
      for (const optim::ParameterGroupRange& r : optimizer_.ranges())
        if (r.begin <= e.offset && e.offset < r.end) t.lr_factor = r.lr_factor, t.decay_factor = r.decay_factor;
      visit(t);
    }
    /// Every worker: a sum over the parts that the ranks own.
    double over_ranks(double own) {
      if (w_.index == 0) {
        all_.shared_ = own;
        policy_.reduce(std::span<double>(&all_.shared_, 1));
      }
      w_.barrier();
      return all_.shared_;
    }
    static constexpr long piece(long p) { return plan::even_range(Model::sizes.stored, norm_pieces, static_cast<int>(p)).begin; }

    HostUpdate& all_;
    const Worker& w_;
    const Bound& optimizer_;
    PolicyState& policy_;
    const UpdateRequest<Scalar>& request_;
    optim::StepCall<Scalar> call_{};
    long begin_ = 0, end_ = 0;
    bool one_array_ = false, whole_ = false;  // one_array_: the workers' sum; whole_: made so here
    bool numbers_read_ = false;
  };

  void find_segments(std::span<const plan::Range> summed) {
    segments_.clear();
    if constexpr (virtual_shards > 0) {
      segments_.push_back({{0, Model::sizes.stored}, false});
      return;
    }
    long at = 0;
    for (const plan::Range& r : summed) {
      if (r.begin > at) segments_.push_back({{at, r.begin}, false});
      segments_.push_back({r, true});
      at = r.end;
    }
    if (at < Model::sizes.stored) segments_.push_back({{at, Model::sizes.stored}, false});
  }

  std::vector<const Scalar*> gradients_;
  Scalar* whole_gradient_ = nullptr;  // where a chain's stages make it: the model's own array
  std::vector<Segment> segments_;
  std::vector<double> numbers_;  // one a worker, or one a piece of the arena
  double norm_ = 0, shared_ = 0;
  bool overflowed_ = false;
};

}  // namespace skein::inline SKEIN_ABI::train
