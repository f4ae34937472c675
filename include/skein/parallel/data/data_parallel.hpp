// SPDX-License-Identifier: Apache-2.0
// DataParallel<Comm>: every rank has the whole model and a part of each batch; gradients are all-reduced. Buckets go in true
// backward order from the first step, each as soon as it is ready; they make progress at layer boundaries (an MPI library
// moves data inside its calls), and the step waits for the rest. Li et al., "PyTorch Distributed", VLDB 2020.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../../comm/any_comm.hpp"
#include "../../core/hash.hpp"
#include "../../plan/buckets.hpp"
#include "../comm_policy_state.hpp"
#include "../exchange/all_reduce_exchange.hpp"
#include "../exchange/bucket_scheduler.hpp"
#include "data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Options of DataParallel that are values.
struct DataParallelOptions {
  Reduce reduce = Reduce::Mean;
  long bucket_bytes = 0;  ///< least size of a bucket; the first bucket has the last layers. 0: the communicator's default
  bool poll = true;       ///< make progress at the boundaries of layers during backward
};

/// The least scalars of a bucket, and of the first one: `.bucket_bytes`, or where the program says nothing 128 KiB, a
/// communicator's cheapest message between threads and processes of one machine; or what the communicator names as `bucket_bytes`
/// and `first_bucket_bytes`.
template <class Comm, class Scalar> plan::BucketSize bucket_size(const DataParallelOptions& options) {
  const auto scalars = [](long bytes) { return std::max<long>(1, bytes / static_cast<long>(sizeof(Scalar))); };
  if (options.bucket_bytes > 0) return scalars(options.bucket_bytes);
  if constexpr (comm::can<Comm, comm::Capability::bucket_sizes>)
    return {scalars(Comm::bucket_bytes), scalars(Comm::first_bucket_bytes)};
  else return scalars(128 * 1024);
}

namespace detail {
/// DataParallel refuses an exchange by what it is for floats.
template <class Exchange, class Comm> inline constexpr bool said_of_floats = [] {
  if constexpr (Communicator<Comm>) return !GradientExchange<Exchange, Comm, float, typename Comm::device>;
  else return false;  // which may have no device
}();
template <class Exchange, class Comm> consteval bool assert_chosen() {
  static_assert(sizeof(Exchange) > 0);                                             // what it says of itself comes first
  if constexpr (Communicator<Comm> && !std::same_as<Exchange, AllReduceExchange>)  // of which nothing can be wrong
    assert_exchange<Exchange, Comm, float, typename Comm::device>();
  return true;
}

/// Buckets without what lies behind the last parameter.
inline std::vector<plan::Range> until(std::vector<plan::Range> buckets, long stored) {
  for (plan::Range& b : buckets) b = {std::min(b.begin, stored), std::min(b.end, stored)};
  return buckets;
}
}  // namespace detail

/// Whose exchange is ExchangeOf<Exchange, Comm, Scalar, Device>, at the times that BucketScheduler gives it.
template <class Comm, class Scalar, class Device, class Exchange = AllReduceExchange> class DataParallelPolicyState
    : public CommPolicyState<Comm, Scalar, Device> {
  using Base = CommPolicyState<Comm, Scalar, Device>;
  static_assert(detail::said_of_floats<Exchange, Comm> || (assert_exchange<Exchange, Comm, Scalar, Device>(), true));
  /// Where it is none, that was said in one sentence: the rest compiles.
  using Sound = std::conditional_t<GradientExchange<Exchange, Comm, Scalar, Device>, Exchange, AllReduceExchange>;
  using Bound = typename detail::WithSums<Sound, Comm, Scalar, Device>::type;

 public:
  using exchange_type = Exchange;
  static constexpr Capabilities capabilities = Base::capabilities | Capabilities{Capability::synchronizes_gradients} |
                                               (Bound::keeps_state ? Capabilities{Capability::keeps_state} : Capabilities{});
  static constexpr bool capturable = Bound::capturable && comm::can<Comm, comm::Capability::captures>;

  DataParallelPolicyState(Comm& comm, const DataParallelOptions& options, const Replica<Scalar, Device>& replica)
      : DataParallelPolicyState(comm, options, replica,
                                plan::without_frozen(plan::buckets(replica.layers, static_cast<long>(replica.gradients.size),
                                                                   bucket_size<Comm, Scalar>(options)),
                                                     replica.layers, replica.first_trained)) {}

  using Base::comm;
  bool synchronizes_gradients() const { return several(); }

  void start() {
    this->check_place("DataParallel");
    if (!several()) return;
    NamedValues values = this->common_values("DataParallel");
    values.add(".reduce", options_.reduce == Reduce::Sum ? "Sum" : "Mean").add("the exchange", Sound::name);
    const std::string& given = this->replica().options;
    values.add("the options", given.empty() ? std::string_view("none") : std::string_view(given));
    this->add_placement(values);
    const std::span<const plan::Range> buckets = scheduler_.buckets();
    values.add("the number of buckets", buckets.size());
    values.add_hash("the division into buckets (.bucket_bytes, frozen parameters)", buckets.data(), buckets.size_bytes());
    comm().assert_same("the models of DataParallel", values);
    this->broadcast_weights();
    exchange().start();
  }

  void gradient_ready(long begin, long end) { scheduler_.ready(begin, end, options_.poll); }
  void finish_gradients() { add_exposed(scheduler_.finish()); }
  SameWeights same_weights() const { return SameWeights::after_step; }
  double gradient_factor() const { return options_.reduce == Reduce::Sum ? static_cast<double>(comm().size()) : 1.0; }

  void replayed() {
    if constexpr (comm::can<Comm, comm::Capability::captures>) comm().replayed();
  }

  /// What of the exchange is saved with the training.
  void before_save() {
    if (several()) exchange().before_save();
  }
  void forget() {
    if constexpr (Bound::keeps_state) exchange().forget();
  }
  static constexpr unsigned archive_version = Bound::archive_version;
  std::string saved_as() const requires(Bound::keeps_state) { return exchange().saved_as(); }
  template <class Archive>
  requires(Bound::keeps_state) void serialize(Archive& archive, unsigned version) { exchange().serialize(archive, version); }

  Bound& exchange() { return scheduler_.exchange(); }
  const Bound& exchange() const { return scheduler_.exchange(); }
  /// When each bucket was exchanged in the last step that exchanged gradients, by whichever exchange.
  std::span<const BucketTrace> trace() const { return scheduler_.timer().trace(); }
  /// When backward had ended in that step, on the clock of trace().
  double backward_done() const { return scheduler_.timer().backward_done(); }

 protected:  // what an option around this policy state works with
  using Base::several, Base::replica, Base::add_exposed;

 private:
  DataParallelPolicyState(Comm& comm, const DataParallelOptions& options, const Replica<Scalar, Device>& replica,
                          const std::vector<plan::Range>& buckets)
      : Base(comm, replica), options_(options), scheduler_(buckets, static_cast<long>(replica.gradients.size), comm, replica,
                                                           Bound::takes_sums ? buckets : detail::until(buckets, replica.stored)) {
  }

  DataParallelOptions options_;
  BucketScheduler<Bound> scheduler_;
};

namespace detail {
/// In place of the communicator that DataParallel{} was not given.
struct NoCommunicator {};
template <class Comm> inline constexpr bool has_the_communicator_of_its_ranks = !std::same_as<Comm, NoCommunicator>;
}  // namespace detail

/// The policy state of DataParallel<Comm, Options...>.
template <class Comm, class Scalar, class Device, class... Options> using DataParallelStateOf =
    WithOptions<DataParallelPolicyState<Comm, Scalar, Device, ExchangeWith<AllReduceExchange, Options...>>, Options...>;

/// Data parallelism: each rank has the whole model and a part of each batch; the ranks add their gradients by all-reduce in each
/// step. The communicator must outlive the training. Options that change the code are types, given as empty values behind the
/// others: DataParallel{world}, DataParallel{world, SyncEvery<4>{}}, DataParallel{world, {.bucket_bytes = 65536}, Sharded<1>{}}.
template <class Comm, class... Options> class DataParallel : public PolicyBase {
  static_assert(assert_options<Options...>());
  static_assert(detail::assert_chosen<ExchangeWith<AllReduceExchange, Options...>, Comm>());

 public:
  using communicator = Comm;
  explicit DataParallel(Comm& comm, DataParallelOptions options = {}) : comm_(&comm), options_(options) {}
  explicit DataParallel(Comm& comm, Options...) requires(sizeof...(Options) > 0) : DataParallel(comm) {}
  explicit DataParallel(Comm& comm, DataParallelOptions options, Options...) requires(sizeof...(Options) > 0)
      : DataParallel(comm, options) {}
  DataParallel() requires std::same_as<Comm, detail::NoCommunicator> : comm_(nullptr) {}
  /// Takes a DataParallel over any communicator, which must outlive this one.
  template <comm::Erasable C>
  requires(std::same_as<Comm, comm::AnyComm> && sizeof...(Options) == 0) explicit DataParallel(const DataParallel<C>& o)
      : owned_(std::make_shared<Comm>(o.comm())), comm_(owned_.get()), options_(o.options()) {}

  template <class R> auto bind(const R& replica) const {
    R own = replica;
    ((own.options += own.options.empty() || Options::described().empty() ? "" : ", ", own.options += Options::described()), ...);
    return DataParallelStateOf<Comm, typename R::Scalar, typename R::Device, Options...>(*comm_, options_, own);
  }
  /// Each rank updates all parameters, or with an option (Sharded) a slice.
  plan::Placement placement(const plan::ArenaTable& table) const {
    if constexpr ((Options::slices_updates || ...))
      return plan::Placement::sliced(plan::slices(table, comm_->size()), comm_->rank());
    else return plan::Placement::replicated(table.stored);
  }
  /// Pages that the ranks share, where the communicator has such and all-reduces the gradients where they are. It is asked with
  /// all options, for nothing with some: ranks whose options differ hear of that from start().
  std::shared_ptr<void> gradient_memory([[maybe_unused]] std::size_t bytes) const {
    constexpr bool in_place = std::same_as<ExchangeWith<AllReduceExchange, Options...>, AllReduceExchange>;
    if constexpr (comm::can<Comm, comm::Capability::shares>) return comm_->share(in_place ? bytes : 0).memory();
    else return nullptr;
  }
  /// Whether the communicator can send this device's memory; and the message if it cannot.
  template <class Device> static constexpr bool fits = comm::sound<Comm, Device>;
  template <class Device> static consteval void assert_fits() {
    if constexpr (detail::has_the_communicator_of_its_ranks<Comm>) assert_communicator<Comm, Device>();
    else
      static_assert(detail::has_the_communicator_of_its_ranks<Comm>,
                    "DataParallel is given the communicator of its ranks: DataParallel{world}, of sk::MpiComm world{argc, argv}");
  }
  Comm& comm() const { return *comm_; }
  const DataParallelOptions& options() const { return options_; }

 private:
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<std::same_as<Comm, comm::AnyComm>, std::shared_ptr<Comm>, Nothing> owned_{};
  Comm* comm_;
  DataParallelOptions options_;
};
/// What is given in place of an option is refused.
template <class Comm, class... Options>
requires(!(DataParallelOption<Options> && ...)) class DataParallel<Comm, Options...> : public detail::RefusedPolicy {
  static_assert(assert_options<Options...>());

 public:
  template <class... Given> explicit DataParallel(Comm&, const Given&...) {}
  explicit DataParallel(Comm&, DataParallelOptions, Options...) {}
  explicit DataParallel(Comm&, Options...) {}
};
/// A trainer's steps do not know the communicator's type: those over MpiComm and over ThreadComm are the same code.
template <comm::Erasable Comm> struct StepPolicyOf<DataParallel<Comm>> { using type = DataParallel<comm::AnyComm>; };

DataParallel()->DataParallel<detail::NoCommunicator>;
template <class Comm, class... Options>
requires(!std::same_as<Options, DataParallelOptions> && ...) DataParallel(Comm&, Options...)
->DataParallel<Comm, Options...>;
template <class Comm, class... Options> DataParallel(Comm&, DataParallelOptions, Options...) -> DataParallel<Comm, Options...>;
/// Values behind a type are refused as an option.
template <class Comm, class First>
requires(!std::same_as<First, DataParallelOptions>) DataParallel(Comm&, First, DataParallelOptions)
->DataParallel<Comm, First, DataParallelOptions>;

}  // namespace skein::inline SKEIN_ABI::parallel
