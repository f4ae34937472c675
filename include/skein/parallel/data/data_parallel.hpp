// SPDX-License-Identifier: Apache-2.0
// DataParallel<Comm>: every rank has the whole model and a part of each batch; gradients are all-reduced. Buckets go in true
// backward order from the first step, each as soon as it is ready; they make progress at layer boundaries (an MPI library
// moves data inside its calls), and the step waits for the rest. Li et al., "PyTorch Distributed", VLDB 2020.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "../../plan/buckets.hpp"
#include "../comm_policy_state.hpp"
#include "bucket_timer.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// How DataParallel exchanges gradients.
struct DataParallelOptions {
  Reduce reduce = Reduce::Mean;
  long bucket_bytes = 0;  ///< at least so much in a bucket; the first bucket is the last layers'. 0: what the communicator likes
  bool poll = true;       ///< make progress at layer boundaries while backward goes on
};

/// Bytes of a bucket, and of the first one, where the program says nothing: 128 KiB, a communicator's cheapest message between
/// threads and processes of one machine; or what the communicator names as `bucket_bytes` and `first_bucket_bytes`.
template <class Comm, class Scalar> plan::BucketSize bucket_size(const DataParallelOptions& options) {
  const auto scalars = [](long bytes) { return std::max<long>(1, bytes / static_cast<long>(sizeof(Scalar))); };
  if (options.bucket_bytes > 0) return scalars(options.bucket_bytes);
  if constexpr (requires { Comm::bucket_bytes; }) return {scalars(Comm::bucket_bytes), scalars(Comm::first_bucket_bytes)};
  else return scalars(128 * 1024);
}

template <class Comm, class Scalar, class Device> class DataParallelPolicyState : public CommPolicyState<Comm, Scalar, Device> {
  using Base = CommPolicyState<Comm, Scalar, Device>;

 public:
  static constexpr Capabilities capabilities = Base::capabilities | Capabilities{Capability::synchronizes_gradients};
  /// A device may keep the step's exchange and repeat it (a CUDA graph).
  static constexpr bool capturable = [] {
    if constexpr (requires { Comm::capturable; }) return Comm::capturable;
    else return false;
  }();
  using Request = decltype(std::declval<Comm&>().start_all_reduce(std::declval<DeviceSpan<Scalar, Device>>(), Sum{}));

  DataParallelPolicyState(Comm& comm, const DataParallelOptions& options, const Replica<Scalar, Device>& replica)
      : Base(comm, replica), options_(options),
        buckets_(
            plan::buckets(replica.operations, static_cast<long>(replica.gradients.size), bucket_size<Comm, Scalar>(options))),
        requests_(buckets_.size()), timer_(buckets_) {}

  using Base::comm;
  bool synchronizes_gradients() const { return several(); }

  void start() {
    this->check_place("DataParallel");
    if (!several()) return;
    Fnv1a f;
    f.add(replica().fingerprint).add(static_cast<std::uint64_t>(options_.reduce)).add(buckets_.size());
    for (const plan::Range& b : buckets_) f.add(static_cast<std::uint64_t>(b.begin)).add(static_cast<std::uint64_t>(b.end));
    comm().assert_same("the models of DataParallel (network, input shape, scalar, options)", f.value());
    this->broadcast_weights();
  }

  void gradient_ready(long begin, long end) {
    if (next_ > 0 && begin < end && end == static_cast<long>(replica().gradients.size)) start_over();
    if (end > begin) timer_.start();
    while (next_ < buckets_.size() && begin < end && begin <= buckets_[next_].begin) {
      timer_.begun(next_);
      const plan::Range b = buckets_[next_];
      (void)requests_[next_].emplace(comm().start_all_reduce(
          replica().gradients.sub(static_cast<std::size_t>(b.begin), static_cast<std::size_t>(b.end)), Sum{}));
      ++next_;
    }
    if (options_.poll) poll();
  }

  void finish_gradients() {
    timer_.backward_ends();
    for (; done_ < next_; ++done_) {
      if (requests_[done_]) requests_[done_]->wait();
      requests_[done_].reset();
      timer_.complete(done_);
    }
    add_exposed(timer_.stop());
    next_ = done_ = 0;
  }

  double gradient_factor() const { return options_.reduce == Reduce::Sum ? static_cast<double>(comm().size()) : 1.0; }

  void replayed() {
    if constexpr (requires { comm().replayed(); }) comm().replayed();
  }

  /// Of the last step whose gradients were exchanged, whichever option exchanged them.
  std::span<const BucketTrace> trace() const { return timer_.trace(); }
  /// When backward had ended in that step, on the clock of trace().
  double backward_done() const { return timer_.backward_done(); }

 protected:  // what an option around this policy state works with
  using Base::several, Base::replica, Base::add_exposed;
  BucketTimer& timer() { return timer_; }
  const DataParallelOptions& options() const { return options_; }

 private:
  /// The first gradients of a step, and buckets are under way: a step was broken off (its capture was refused, say) and begins
  /// anew.
  void start_over() {
    for (auto& r : requests_) r.reset();
    next_ = done_ = 0;
    (void)timer_.stop();
  }

  /// In order: the first that is not done keeps the later ones waiting, so that all ranks see the same sequence.
  void poll() {
    for (std::size_t i = done_; i < next_; ++i) {
      if (!requests_[i]) continue;
      if (!requests_[i]->poll()) break;
      timer_.complete(i);
      requests_[i].reset();
    }
    while (done_ < next_ && !requests_[done_]) ++done_;
  }

  DataParallelOptions options_;
  std::vector<plan::Range> buckets_;
  std::vector<std::optional<Request>> requests_;
  BucketTimer timer_;
  std::size_t next_ = 0, done_ = 0;  // buckets begun, and of those the leading ones that are complete
};

/// Data parallelism over a communicator, which must outlive the training. Options are types that change one thing each
/// (SyncEvery<4>, Compress<...>, Sharded<1>, ...): without them it is synchronous SGD by all-reduce in 32 bits.
template <class Comm, class... Options> class DataParallel : public PolicyBase {
  static_assert(assert_options<Options...>());

 public:
  using communicator = Comm;
  explicit DataParallel(Comm& comm, DataParallelOptions options = {}) : comm_(&comm), options_(options) {}

  template <class R> auto bind(const R& replica) const {
    using Base = DataParallelPolicyState<Comm, typename R::Scalar, typename R::Device>;
    return WithOptions<Base, Options...>(*comm_, options_, replica);
  }
  /// The part of `stored` parameters that this rank updates, where an option (Sharded) says so.
  plan::Range owned(long stored) const {
    plan::Range own{0, stored};
    ((own = owned_by<Options>(own)), ...);
    return own;
  }
  /// Does the communicator move this device's memory; and the sentence where it does not.
  template <class Device> static constexpr bool fits = Communicator<Comm>&& std::same_as<typename Comm::device, Device>;
  template <class Device> static consteval void assert_fits() { assert_communicator<Comm, Device>(); }
  Comm& comm() const { return *comm_; }

 private:
  template <class Option> plan::Range owned_by(plan::Range otherwise) const {
    if constexpr (requires { Option::owned(otherwise.end, 1, 0); })
      return Option::owned(otherwise.end, comm_->size(), comm_->rank());
    else return otherwise;
  }

  Comm* comm_;
  DataParallelOptions options_;
};
template <class Comm> DataParallel(Comm&) -> DataParallel<Comm>;
template <class Comm> DataParallel(Comm&, DataParallelOptions) -> DataParallel<Comm>;

/// data_parallel<SyncEvery<4>>(world, {.bucket_bytes = 65536}): the options by type, the communicator's type by what is given.
template <class... Options, class Comm>
DataParallel<Comm, Options...> data_parallel(Comm& comm, DataParallelOptions options = {}) {
  return DataParallel<Comm, Options...>(comm, options);
}

}  // namespace skein::inline SKEIN_ABI::parallel
