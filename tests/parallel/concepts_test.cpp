// SPDX-License-Identifier: Apache-2.0
// Near misses of a policy state, each with its fault; and that what wraps a policy forwards every hook and every capability.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/parallel.hpp>
#include <skein/simulate.hpp>
#include <skein/train/archive.hpp>

namespace sk = skein;
namespace sp = skein::parallel;
using sp::Capabilities, sp::Capability;
using Fault = sp::detail::PolicyStateFault;
template <class S> constexpr Fault fault = sp::detail::first_state_fault<S>();

// ---- what the library has is sound, and says what it is
using Replica = sp::Replica<float, sk::Cpu>;
template <class P> using StateOf = decltype(std::declval<const P&>().bind(std::declval<const Replica&>()));
template <class... Options> using Parallel = sp::DataParallel<sk::ThreadComm, Options...>;
template <class... P> constexpr bool sound = ((sp::Policy<P, Replica> && fault<StateOf<P>> == Fault::none) && ...);
static_assert(
    sound<sp::SingleProcess, Parallel<>, Parallel<sp::SyncEvery<2>>, Parallel<sp::Sharded<1>>, Parallel<sp::Sharded<2>>>);
static_assert(sound<Parallel<sp::Reproducible<4>>, Parallel<sp::SyncBatchNorm>, Parallel<sp::Compress<sk::comm::Int8Codec<>>>>);
static_assert(
    sound<sp::ModelAverage<sk::ThreadComm, sp::Period<2>>, sp::Gossip<sk::ThreadComm>, sp::ParameterServer<sk::ThreadComm>>);
static_assert(sp::SynchronizesGradients<StateOf<Parallel<>>> && !sp::SynchronizesGradients<sp::PolicyState>);
static_assert(sp::OwnsPart<StateOf<Parallel<sp::Sharded<1>>>> && !sp::OwnsPart<StateOf<Parallel<>>>);
static_assert(sp::ReducesStatistics<StateOf<Parallel<sp::SyncBatchNorm>>> && !sp::ReducesStatistics<StateOf<Parallel<>>>);
static_assert(sp::AveragesWeights<StateOf<sp::Gossip<sk::ThreadComm>>> && !sp::AveragesWeights<StateOf<Parallel<>>>);
static_assert(sp::ServesUpdates<StateOf<sp::ParameterServer<sk::ThreadComm>>> && !sp::ServesUpdates<StateOf<Parallel<>>>);
static_assert(sp::KeepsState<StateOf<sp::ModelAverage<sk::ThreadComm, sp::Period<2>>>> && !sp::KeepsState<StateOf<Parallel<>>>);
static_assert(sp::SumsShards<StateOf<Parallel<sp::Reproducible<4>>>> && !sp::SumsShards<StateOf<Parallel<>>>);
static_assert(sp::LetsWeightsDrift<StateOf<Parallel<sp::SyncFirst<3>>>> && !sp::LetsWeightsDrift<StateOf<Parallel<>>>);

// ---- near misses
namespace {
template <Capability... C> struct Declares : sp::PolicyState { static constexpr Capabilities capabilities{C...}; };
struct ReturnsNothing : sp::PolicyState {
  void after_step(const sp::StepDone&) {}
};
struct TakesAnInt : sp::PolicyState {
  void gradient_ready(long) {}
};
struct Misspelled : Declares<Capability::synchronizes_gradients> {
  bool synchronizes_gradients() const { return true; }
  void gradients_ready(long, long) {}
  void finish_gradients() {}
};
struct Undeclared : sp::PolicyState {
  void finish_gradients() {}
};
struct Statistics : sp::PolicyState {
  void reduce_statistics(double*, long) {}
};
struct StatisticsOfFloats : Declares<Capability::reduces_statistics> {
  void reduce_statistics(float*, long) {}
};
struct OfOne : Declares<Capability::synchronizes_gradients> {  // does not say among whom
  bool synchronizes_gradients() const { return true; }
  void gradient_ready(long, long) {}
  void finish_gradients() {}
};
struct OfTwo : OfOne {
  int rank() const { return 0; }
  int ranks() const { return 2; }
};
struct Drifter : sp::PolicyState {
  void weights_agree() {}
};
struct Owner : sp::PolicyState {
  void sum_over_owners(std::span<double>) {}
};
struct Server : sp::PolicyState {
  bool serves() const { return true; }
};
struct Sharder : sp::PolicyState {
  static constexpr int virtual_shards = 4;
};
struct Sharer : sp::PolicyState {
  int batch_parts() const { return 1; }
  int batch_part() const { return 0; }
  bool scores() const { return true; }
};
struct Keeper : sp::PolicyState {
  template <class Archive> void serialize(Archive&, unsigned) {}
};
struct KeeperWithoutName : Declares<Capability::keeps_state> {
  template <class Archive> void serialize(Archive&, unsigned) {}
};
// Names of what is not declared, of another signature.
struct AgreesOnSteps : sp::PolicyState {
  void weights_agree(long) {}
};
struct StatisticsUndeclared : sp::PolicyState {
  void reduce_statistics(float*, long) {}
};
struct OwnerOfFloats : sp::PolicyState {
  void sum_over_owners(float*, long) {}
};
struct SharerOfLongs : sp::PolicyState {
  long batch_parts() const { return 1; }
};
struct KeeperOfAnId : sp::PolicyState {
  int saved_as() const { return 7; }
};
struct StateWithoutBase {};
struct MeetsInNumbers : sp::PolicyState {
  int all_met() const { return 1; }
};
struct TellsNoSignal : Declares<Capability::serves_updates> {
  bool serves() const { return true; }
  void serve(const sp::UpdateCallback&) {}
  void set_signal(std::string) {}
};
}  // namespace
static_assert(fault<sp::PolicyState> == Fault::none);
static_assert(fault<StateWithoutBase> == Fault::hooks && fault<ReturnsNothing> == Fault::hooks &&
              fault<TakesAnInt> == Fault::hooks && fault<MeetsInNumbers> == Fault::hooks);
static_assert(fault<TellsNoSignal> == Fault::serves);
static_assert(fault<Misspelled> == Fault::gradients && fault<Undeclared> == Fault::gradients_undeclared);
static_assert(fault<Statistics> == Fault::statistics_undeclared && fault<StatisticsOfFloats> == Fault::statistics);
static_assert(fault<Owner> == Fault::part_undeclared && fault<Declares<Capability::owns_part>> == Fault::part);
static_assert(fault<OfOne> == Fault::gradients_of_one && fault<OfTwo> == Fault::none);
static_assert(fault<Drifter> == Fault::drift_undeclared && fault<AgreesOnSteps> == Fault::drift_undeclared);
static_assert(fault<StatisticsUndeclared> == Fault::statistics_undeclared && fault<OwnerOfFloats> == Fault::part_undeclared);
static_assert(fault<SharerOfLongs> == Fault::batches_undeclared && fault<KeeperOfAnId> == Fault::state_undeclared);
static_assert(fault<Server> == Fault::serves_undeclared && fault<Declares<Capability::serves_updates>> == Fault::serves);
static_assert(fault<Sharder> == Fault::shards_undeclared && fault<Declares<Capability::sums_shards>> == Fault::shards);
static_assert(fault<Sharer> == Fault::batches_undeclared && fault<Declares<Capability::shares_batches>> == Fault::batches);
static_assert(fault<Keeper> == Fault::state_undeclared && fault<KeeperWithoutName> == Fault::state);
static_assert(fault<Declares<Capability::splits_model>> == Fault::model);
static_assert(fault<Declares<Capability::communicates>> == Fault::communicator);
static_assert(fault<Declares<Capability::averages_weights>> == Fault::averages);
static_assert(fault<Declares<Capability::lets_weights_drift>> == Fault::drift);

namespace {
struct PartialOwner : Declares<Capability::owns_part> {
  void sum_over_owners(std::span<double>) {}
  void gather(sk::DeviceSpan<float>, sk::DeviceSpan<float>) {}
};
struct OwnsWithoutKnowing : sp::PolicyBase {
  template <class R> PartialOwner bind(const R&) const { return {}; }
};
struct OwnsAndKnows : OwnsWithoutKnowing {
  sk::plan::Placement placement(const sk::plan::ArenaTable& t) const {
    return sk::plan::Placement::sliced({{0, t.stored / 2}}, 0);
  }
};
}  // namespace
static_assert(fault<PartialOwner> == Fault::none && !sp::Policy<OwnsWithoutKnowing, Replica> &&
              sp::Policy<OwnsAndKnows, Replica>);

namespace {
using ReplicaThere = sp::Replica<float, sk::Cuda>;
struct OwnerThere : PartialOwner {
  void sum_over_owners_there(sk::DeviceSpan<double, sk::Cuda>) {}
};
struct OwnsThere : OwnsAndKnows {
  template <class R> OwnerThere bind(const R&) const { return {}; }
};
}  // namespace
static_assert(!sp::Policy<OwnsAndKnows, ReplicaThere> && sp::Policy<OwnsThere, ReplicaThere>);

// ---- what wraps forwards
namespace {
enum Hook {
  start,
  epoch_begins,
  before_step,
  after_step,
  all_met,
  epoch_ends,
  finish,
  synchronizes_gradients,
  gradient_ready,
  finish_gradients,
  gradient_factor,
  before_save,
  forget,
  average_buffers,
  reduce,
  barrier,
  numbers_of_all,
  texts_of_all,
  rank_names,
  same_weights,
  check,
  part_not_finite,
  replayed,
  rank,
  ranks,
  local_ranks,
  one_process,
  exposed,
  reduce_statistics,
  serialize,
  saved_as,
  hook_count
};
using Counts = std::array<int, hook_count>;

/// Every hook that goes with other policies, counted; each answers what PolicyState's does not. A hook that is missing here is in
/// a Compose an error where it is called, since that derives from nothing; in the others it is inherited.
struct CountedState : sp::PolicyState {
  static constexpr Capabilities capabilities{Capability::synchronizes_gradients, Capability::reduces_statistics,
                                             Capability::keeps_state};
  static constexpr bool local_sums = true, capturable = true;
  static constexpr int virtual_shards = 0;
  explicit CountedState(Counts* where) : counts(where) {}
  Counts* counts;
  template <class T = int> T says(Hook h, T answer = {}) const {
    ++(*counts)[h];
    return answer;
  }
  void start() { says(Hook::start); }
  void epoch_begins(std::int64_t) { says(Hook::epoch_begins); }
  bool before_step(std::int64_t) { return says(Hook::before_step, true); }
  bool after_step(const sp::StepDone&) { return says(Hook::after_step, true); }
  bool all_met() const { return says(Hook::all_met, true); }
  bool epoch_ends(std::int64_t) { return says(Hook::epoch_ends, true); }
  bool finish() { return says(Hook::finish, true); }
  bool synchronizes_gradients() const { return says(Hook::synchronizes_gradients, true); }
  void gradient_ready(long, long) { says(Hook::gradient_ready); }
  void finish_gradients() { says(Hook::finish_gradients); }
  double gradient_factor() const { return says(Hook::gradient_factor, 3.0); }
  void before_save() { says(Hook::before_save); }
  void forget() { says(Hook::forget); }
  void average_buffers() { says(Hook::average_buffers); }
  void reduce(std::span<double>) { says(Hook::reduce); }
  void barrier() { says(Hook::barrier); }
  std::vector<std::uint64_t> numbers_of_all(std::span<const std::uint64_t>) {
    return says(Hook::numbers_of_all, std::vector<std::uint64_t>{7});
  }
  std::vector<std::string> texts_of_all(const std::string&) {
    return says(Hook::texts_of_all, std::vector<std::string>{"seven"});
  }
  sk::comm::RankNames rank_names() const { return says(Hook::rank_names, sk::comm::RankNames(std::vector<int>{4, 5, 6})); }
  sp::SameWeights same_weights() const { return says(Hook::same_weights, sp::SameWeights::after_fit); }
  void check() const { says(Hook::check); }
  std::string part_not_finite() { return says(Hook::part_not_finite, std::string("infinite")); }
  void replayed() { says(Hook::replayed); }
  int rank() const { return says(Hook::rank, 2); }
  int ranks() const { return says(Hook::ranks, 3); }
  int local_ranks() const { return says(Hook::local_ranks, 3); }
  bool threads_of_one_process() const { return says(Hook::one_process, true); }
  double exposed_seconds() const { return says(Hook::exposed, 5.0); }
  void reduce_statistics(double*, long) { says(Hook::reduce_statistics); }
  std::string saved_as() const { return says(Hook::saved_as, std::string("counted")); }
  template <class Archive> void serialize(Archive&, unsigned) { says(Hook::serialize); }
};
struct CountedPolicy : sp::PolicyBase {
  explicit CountedPolicy(Counts& where) : counts(&where) {}
  Counts* counts;
  template <class R> CountedState bind(const R&) const { return CountedState{counts}; }
};
static_assert(sp::IsPolicyState<CountedState>);

/// A world with nothing but a clock.
struct Clock {
  static constexpr sk::comm::Capabilities capabilities{sk::comm::Capability::computes};
  double now = 0;
  void compute(double seconds) { now += seconds; }
};

/// Calls every hook of a state: each must reach the counted state once, and no answer is lost. `own` are those that what stands
/// around it answers itself.
template <class State> void every_hook_of(State& state, Counts& counts, std::initializer_list<Hook> own = {}) {
  counts = Counts{};  // a Compose has asked how wide each is
  state.epoch_begins(0);
  CHECK(state.before_step(1));
  CHECK(state.after_step({}));
  CHECK(state.all_met());
  CHECK(state.epoch_ends(0));
  CHECK(state.synchronizes_gradients());
  state.gradient_ready(0, 0);
  state.finish_gradients();
  CHECK(state.gradient_factor() == 3);
  state.before_save();
  state.forget();
  state.average_buffers();
  state.reduce({});
  state.barrier();
  CHECK(state.numbers_of_all({}) == std::vector<std::uint64_t>{7});
  CHECK(state.texts_of_all("") == std::vector<std::string>{"seven"});
  CHECK(state.rank_names().name(1) == "rank 5");
  CHECK(state.same_weights() == sp::SameWeights::after_fit);
  state.check();
  CHECK(state.part_not_finite() == "infinite");
  state.replayed();
  CHECK(state.rank() == 2);
  CHECK(state.ranks() == 3);
  CHECK(state.local_ranks() == 3);
  CHECK(state.threads_of_one_process());
  CHECK(state.exposed_seconds() == 5);
  state.reduce_statistics(nullptr, 0);
  CHECK(state.finish());
  CHECK(state.saved_as().find("counted") != std::string::npos);
  (void)sk::train::to_bytes(state);
  state.start();
  for (const Hook h : {rank, ranks}) counts[h] = std::min(counts[h], 1);  // asked by the wrapping hooks too
  for (int h = 0; h < hook_count; ++h) {
    CAPTURE(h);
    CHECK(counts[static_cast<std::size_t>(h)] == (std::find(own.begin(), own.end(), h) == own.end() ? 1 : 0));
  }
}
template <class Policy> void every_hook_arrives(const Policy& policy, Counts& counts) {
  static_assert(sp::Policy<Policy, Replica>);
  auto state = policy.bind(Replica{});
  using State = decltype(state);
  static_assert(State::capabilities == CountedState::capabilities);
  static_assert(State::local_sums && State::capturable && State::virtual_shards == 0);
  every_hook_of(state, counts);
}

/// The counted state as options of DataParallel want what they stand around: with a communicator, of one rank.
struct CountedWithin : CountedState {
  using communicator = sk::SelfComm;
  using scalar = float;
  using device = sk::Cpu;
  static constexpr unsigned archive_version = 0;
  CountedWithin(sk::SelfComm& comm, Counts* where, const Replica& of) : CountedState(where), world(&comm), arrays(of) {}
  sk::SelfComm& comm() const { return *world; }
  bool several() const { return false; }
  struct Waiting {
    ~Waiting() {}
  };
  Waiting waiting() const { return {}; }
  void average_weights() {}
  const Replica& replica() const { return arrays; }
  sk::SelfComm* world;
  Replica arrays;
};
/// Has no hook.
struct Idle : sp::PolicyBase {
  template <class R> sp::PolicyState bind(const R&) const { return {}; }
};
template <class Option> void every_hook_passes(Counts& counts, std::initializer_list<Hook> own = {}) {
  using State = typename Option::template Around<CountedWithin>;
  static_assert((State::capabilities | CountedState::capabilities) == State::capabilities);
  sk::SelfComm world;
  State state(world, &counts, Replica{});
  every_hook_of(state, counts, own);
}
}  // namespace

TEST_CASE("what wraps a policy forwards every hook", "[parallel]") {
  Counts counts{};
  const CountedPolicy policy{counts};
  SECTION("nothing around it") { every_hook_arrives(policy, counts); }
  SECTION("Slowed") { every_hook_arrives(sp::Slowed{policy, {.rank = 7}}, counts); }
  SECTION("simulated") {
    Clock clock;
    every_hook_arrives(sp::Simulated{policy, clock, {.forward = 1, .backward = 2, .update = 3}}, counts);
    CHECK(clock.now == 6);
  }
  SECTION("Compose") { every_hook_arrives(sp::Compose{Idle{}, policy}, counts); }
  SECTION("options that exchange sometimes") {
    const auto own = {Hook::all_met, Hook::same_weights};
    every_hook_passes<sp::SyncEvery<1>>(counts, own);
    every_hook_passes<sp::SyncEveryEpochs<1>>(counts, own);
    every_hook_passes<sp::SyncFirst<3>>(counts, own);
  }
  SECTION("SyncBatchNorm") { every_hook_passes<sp::SyncBatchNorm>(counts, {Hook::reduce_statistics}); }
  SECTION("Sharded") { every_hook_passes<sp::Sharded<1>>(counts); }
  SECTION("GradientWorkers") { every_hook_passes<sp::GradientWorkers<sp::EveryRank>>(counts); }
}
