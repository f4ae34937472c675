// SPDX-License-Identifier: Apache-2.0
// What an exchange of gradients is: a type whose On<Comm, Scalar, Device> makes the ranks' sum of a bucket of gradients. It is
// begun when the bucket is ready, polled at the boundaries of layers, and waited for at the end of backward; in which order and
// when is BucketScheduler's affair. An option of DataParallel chooses one: ExchangeBy<Own>, Compress, Algorithm, Sharded<2>,
// Reproducible.
#pragma once
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "../../comm/op.hpp"
#include "../../plan/buckets.hpp"
#include "../concepts.hpp"
#include "../policy.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The base of an exchange's On: what it works with, and what it does not say itself. All calls are worker 0's, and collectives
/// must be called in the same order on all ranks: in begin(), backward_ended() and wait(), which come for bucket after bucket,
/// not in poll().
template <class Comm_, class Scalar_, class Device_> class ExchangeOn {
 public:
  using Comm = Comm_;
  using Scalar = Scalar_;
  using Device = Device_;
  using Span = DeviceSpan<Scalar, Device>;
  /// A started collective: poll() and wait().
  using Request = decltype(std::declval<Comm&>().start_all_reduce(std::declval<Span>(), Sum{}));
  /// The sums of the batch (loss, weight, correct answers) lie behind the last parameter, and are part of the first bucket.
  /// False: buckets end at the last parameter, and the sums are all-reduced beside them, exactly.
  static constexpr bool takes_sums = true;
  /// True: a device may keep the calls of a step and repeat them.
  static constexpr bool capturable = false;
  /// True: it has saved_as() and serialize(archive, version), which are saved with the training.
  static constexpr bool keeps_state = false;
  /// The version that serialize() writes, and the latest that it reads.
  static constexpr unsigned archive_version = 0;

  ExchangeOn(Comm& comm, const Replica<Scalar, Device>& replica, const std::vector<plan::Range>& buckets)
      : comm_(&comm), replica_(replica), buckets_(buckets.begin(), buckets.end()) {}

  /// Before the first step, and once more after a training was loaded: memory is made here. There are several ranks.
  void start() {}
  /// Backward has ended, all buckets have begun.
  void backward_ended() {}
  /// A step was broken off: nothing is under way any more.
  void drop() {}
  /// Before a training is saved, on all ranks.
  void before_save() {}
  /// A training was loaded whose file has no state of this exchange: drops what it keeps of the steps before. Called where
  /// keeps_state.
  void forget() {}

  Comm& comm() const { return *comm_; }
  const Replica<Scalar, Device>& replica() const { return replica_; }
  std::size_t buckets() const { return buckets_.size(); }
  /// The first bucket is the last layers'.
  plan::Range range(std::size_t i) const { return buckets_[i]; }
  /// Its gradients, which become the sum over the ranks.
  Span bucket(std::size_t i) const { return gradients(buckets_[i]); }
  /// Rank r's part of it, where each has an even one.
  plan::Range piece(std::size_t i, int rank) const {
    const plan::Range b = buckets_[i], part = plan::even_range(b.end - b.begin, comm_->size(), rank);
    return {b.begin + part.begin, b.begin + part.end};
  }
  Span gradients(plan::Range r) const {
    return replica_.gradients.sub(static_cast<std::size_t>(r.begin), static_cast<std::size_t>(r.end));
  }

 private:
  Comm* comm_;
  Replica<Scalar, Device> replica_;
  std::vector<plan::Range> buckets_;
};

/// E's class for one communicator, scalar and device.
template <class E, class Comm, class Scalar, class Device> using ExchangeOf = typename E::template On<Comm, Scalar, Device>;

namespace detail {
template <class E> concept Named = requires {
  { E::name } -> std::convertible_to<std::string_view>;
};
template <class E, class Comm, class Scalar, class Device> concept HasOn = requires {
  typename ExchangeOf<E, Comm, Scalar, Device>;
  requires std::derived_from<ExchangeOf<E, Comm, Scalar, Device>, ExchangeOn<Comm, Scalar, Device>>;
};
/// It has what saves it, and says nothing of it.
template <class On, class Base> concept SavesUndeclared = &On::keeps_state == &Base::keeps_state &&
                                                          (HasSerialize<On> || HasSavedAs<On>);
template <class On> concept SavesDeclared = !On::keeps_state || (HasSerialize<On> && HasSavedAs<On>);
template <class On> concept MovesBuckets = requires(On& e, std::size_t bucket) {
  { e.begin(bucket) } -> std::same_as<void>;
  { e.poll(bucket) } -> std::same_as<bool>;
  { e.wait(bucket) } -> std::same_as<void>;
};
}  // namespace detail

/// An exchange for that communicator, scalar and device.
template <class E, class Comm, class Scalar, class Device> concept GradientExchange = requires {
  requires detail::Named<E> && detail::HasOn<E, Comm, Scalar, Device>;
  requires detail::MovesBuckets<ExchangeOf<E, Comm, Scalar, Device>>;
  requires !detail::SavesUndeclared<ExchangeOf<E, Comm, Scalar, Device>, ExchangeOn<Comm, Scalar, Device>>;
  requires detail::SavesDeclared<ExchangeOf<E, Comm, Scalar, Device>>;
};

/// Refuses, with one sentence, what is no exchange.
template <class E, class Comm, class Scalar, class Device> consteval void assert_exchange() {
  constexpr bool named = detail::Named<E>, has_on = detail::HasOn<E, Comm, Scalar, Device>;
  static_assert(has_on,
                "an exchange of gradients has a class template On<Comm, Scalar, Device> that derives from "
                "parallel::ExchangeOn<Comm, Scalar, Device> and has its constructor");
  static_assert(named || !has_on,
                "an exchange of gradients has a name, static constexpr std::string_view name = \"...\", by which "
                "the ranks agree on it");
  if constexpr (named && has_on) {
    using On = ExchangeOf<E, Comm, Scalar, Device>;
    constexpr bool moves = detail::MovesBuckets<On>, saves = detail::SavesDeclared<On>,
                   undeclared = detail::SavesUndeclared<On, ExchangeOn<Comm, Scalar, Device>>;  // whose parts no compiler lists
    static_assert(
        moves,
        "an exchange has void begin(bucket), bool poll(bucket), void wait(bucket): one is missing, or returns something else");
    static_assert(
        !undeclared,
        "an exchange with serialize() or saved_as() says static constexpr bool keeps_state = true: else its state is not "
        "saved with the training");
    static_assert(saves,
                  "an exchange that says keeps_state has std::string saved_as() const and template <class Archive> void "
                  "serialize(Archive&, unsigned version)");
  }
}

namespace detail {
/// An exchange that leaves the sums of the batch to this: they travel by an all-reduce that begins before the first bucket.
template <class Exchange, class Comm, class Scalar, class Device> class SumsApart : public Exchange {
  using Request = decltype(std::declval<Comm&>().start_all_reduce(std::declval<DeviceSpan<Scalar, Device>>(), Sum{}));

 public:
  using Exchange::Exchange;
  void begin(std::size_t i) {
    const auto& r = this->replica();
    if (i == 0)
      (void)sums_.emplace(
          this->comm().start_all_reduce(r.gradients.sub(static_cast<std::size_t>(r.stored), r.gradients.size), Sum{}));
    Exchange::begin(i);
  }
  bool poll(std::size_t i) {
    if (i == 0 && sums_) {
      if (!sums_->poll()) return false;
      sums_.reset();
    }
    return Exchange::poll(i);
  }
  void wait(std::size_t i) {
    if (i == 0 && sums_) sums_->wait();
    sums_.reset();
    Exchange::wait(i);
  }
  void drop() {
    sums_.reset();
    Exchange::drop();
  }

 private:
  std::optional<Request> sums_;
};
template <class E, class Comm, class Scalar, class Device, bool TakesSums = ExchangeOf<E, Comm, Scalar, Device>::takes_sums>
struct WithSums {
  using type = ExchangeOf<E, Comm, Scalar, Device>;
};
template <class E, class Comm, class Scalar, class Device> struct WithSums<E, Comm, Scalar, Device, false> {
  using type = SumsApart<ExchangeOf<E, Comm, Scalar, Device>, Comm, Scalar, Device>;
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::parallel
