// SPDX-License-Identifier: Apache-2.0
// OverlappedCurvature: the state of Kfac over ranks that exchange their gradients in the step. The sums for the factors leave
// with them, in buckets of whole layers from the back, each as soon as all workers have left its layers in backward.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../../parallel/concepts.hpp"
#include "../../parallel/exchange/all_reduce_exchange.hpp"
#include "../../parallel/exchange/bucket_scheduler.hpp"

namespace skein::inline SKEIN_ABI::train {

/// All ranks exchange gradients by one communicator, and those of a step are one loss's.
template <class PolicyState> concept OverlapsCurvature =
    parallel::Communicates<PolicyState> && parallel::SynchronizesGradients<PolicyState> && !PolicyState::local_sums &&
    PolicyState::virtual_shards == 0;

/// State: optim::KfacState. All calls are worker 0's.
template <class State, class PolicyState> class OverlappedCurvature : public State {
  using Scalar = typename State::value_type;
  using Comm = typename PolicyState::communicator;
  using Exchange = parallel::AllReduceExchange::On<Comm, Scalar, Cpu>;

 public:
  /// The arguments behind `comm` are State's; `comm` must outlive it.
  template <class... Arguments> explicit OverlappedCurvature(Comm& comm, Arguments&&... arguments)
      : State(std::forward<Arguments>(arguments)...), scheduler_(ranges(), packed_size(), comm, replica(), ranges()) {}

  /// Before a step, from 1, which exchanges gradients or does not: does what it collects leave during backward.
  template <class Kfac> void begin_step(const Kfac& kfac, bool exchanges, std::int64_t step) {
    leaves_ = exchanges && kfac.overlap && kfac.updates_factors(step) && packed_size() > 0;
    next_ = 0;
  }
  /// Gradients [begin, end) are final. They are told to gradients(begin, end) up to where a bucket of factors is complete, then
  /// that bucket leaves: so all ranks start their collectives in one order, however many layers they hear of at once.
  template <class Gradients> void gradient_ready(long begin, long end, const Gradients& gradients) {
    if (!leaves_) return gradients(begin, end);
    const long all = packed_size();
    if (next_ == 0 && begin < end) scheduler_.ready(all - 1, all, false);  // the number of samples: the clock starts
    if (begin == end) gradients(begin, end);
    while (begin < end) {
      const bool more = next_ < this->factor_buckets().size();
      const long to = more ? std::clamp(this->factor_buckets()[next_].parameter, begin, end) : begin;
      if (to < end) gradients(to, end);
      if (more && to <= this->factor_buckets()[next_].parameter) leave();
      else if (to == end) break;
      end = to;
    }
    scheduler_.ready(0, 0, true);
  }
  /// Backward has ended and all is begun: returns when the ranks' sums are there.
  void finish_sums() {
    if (leaves_) exposed_ += scheduler_.finish();
    leaves_ = false;
  }

  /// When each bucket of factors travelled in the last step whose factors left during backward, on the clock of the gradients'
  /// trace: ranges are of packed_sums().
  std::span<const parallel::BucketTrace> trace() const { return scheduler_.timer().trace(); }
  /// Seconds that steps have waited for factors, behind the gradients.
  double exposed_seconds() const { return exposed_; }

 private:
  long packed_size() { return static_cast<long>(this->packed_sums().size()); }
  std::vector<plan::Range> ranges() {
    std::vector<plan::Range> all;
    for (const auto& b : this->factor_buckets()) all.push_back(b.packed);
    return all;
  }
  parallel::Replica<Scalar, Cpu> replica() {
    parallel::Replica<Scalar, Cpu> r;
    r.gradients = {this->packed_sums().data(), this->packed_sums().size()};
    return r;
  }
  void leave() {
    const plan::Range packed = this->factor_buckets()[next_].packed;
    this->pack(next_);
    scheduler_.ready(packed.begin, next_++ == 0 ? packed.end - 1 : packed.end, false);
  }

  parallel::BucketScheduler<Exchange> scheduler_;
  std::size_t next_ = 0;
  bool leaves_ = false;
  double exposed_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::train
