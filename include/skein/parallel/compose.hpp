// SPDX-License-Identifier: Apache-2.0
// Compose<Policies...>: several policies in one training, each with its own communicator or all over one: gradients every n steps
// and models every m; averages within a machine every 4 steps and over all machines every 16. Groups must nest, which all ranks
// check at start.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check_compose.hpp"
#include "comm_policy_state.hpp"
#include "concepts.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// It derives from nothing: a hook that it does not forward is no no-op of PolicyState's, but an error where it is called.
template <class... PolicyStates> class ComposedPolicyState {
  static constexpr std::size_t count = sizeof...(PolicyStates);
  /// The one whose gradients are exchanged, or count.
  static constexpr std::size_t with_gradients = [] {
    constexpr bool has[] = {SynchronizesGradients<PolicyStates>...};
    std::size_t i = 0;
    while (i < count && !has[i]) ++i;
    return i;
  }();
  static constexpr bool any_gradients = with_gradients < count;
  struct NoGradients : PolicyState {
    static constexpr bool capturable = true;
  };
  using Gradients = std::tuple_element_t<with_gradients, std::tuple<PolicyStates..., NoGradients>>;

 public:
  /// Beside an average of models gradients may be those of some ranks alone.
  static constexpr bool local_sums = !any_gradients || Gradients::local_sums || (AveragesWeights<PolicyStates> || ...);
  static constexpr bool capturable = Gradients::capturable;
  static constexpr bool simulated_time = (PolicyStates::simulated_time || ...);
  static constexpr int virtual_shards = 0;
  static constexpr Capabilities capabilities = detail::composed_capabilities<PolicyStates...>();

  template <class R, class... Policies> ComposedPolicyState(const R& replica, const Policies&... policies)
      : policy_states_(policies.bind(replica)...) {
    int widest = 0;
    each([&](auto& s, std::size_t i) {
      if (s.ranks() > widest) widest = s.ranks(), widest_ = i;
    });
  }

  int rank() const {
    return of_widest(0, [](const auto& s) { return s.rank(); });
  }
  int ranks() const {
    return of_widest(1, [](const auto& s) { return s.ranks(); });
  }
  int local_ranks() const {
    return of_widest(1, [](const auto& s) { return s.local_ranks(); });
  }
  bool threads_of_one_process() const {
    return of_widest(false, [](const auto& s) { return s.threads_of_one_process(); });
  }

  /// The widest first: whoever refuses does so before the others exchange anything.
  void start() {
    check_groups();
    each([&](auto& s, std::size_t i) {
      if (i == widest_) s.start();
    });
    each([&](auto& s, std::size_t i) {
      if (i != widest_) s.start();
    });
  }
  void epoch_begins(std::int64_t epoch) {
    each([&](auto& s, std::size_t) { s.epoch_begins(epoch); });
  }
  bool epoch_ends(std::int64_t epoch) {
    return any([&](auto& s) { return s.epoch_ends(epoch); });
  }
  bool before_step(std::int64_t step) {
    return any([&](auto& s) { return s.before_step(step); });
  }
  bool after_step(const StepDone& done) {
    return any([&](auto& s) { return s.after_step(done); });
  }
  /// Averages of models first: they leave nothing to do for the policy of the gradients.
  bool finish() {
    bool changed = false, agreed = false;  // an average over some ranks leaves the policy of the gradients its own over all
    each([&](auto& s, std::size_t i) {
      if (i == with_gradients) return;
      const bool here = s.finish();
      changed = changed || here;
      if (s.ranks() != ranks()) agreed = agreed && !AveragesWeights<std::remove_reference_t<decltype(s)>>;
      else if (here) agreed = s.same_weights() != SameWeights::never;  // a smaller group's may have changed none here alone
    });
    if constexpr (any_gradients) {
      if (agreed) weights_agree();
      changed = gradients().finish() || changed;
    }
    return changed;
  }
  void weights_agree() {
    each([](auto& s, std::size_t) {
      if constexpr (LetsWeightsDrift<std::remove_reference_t<decltype(s)>>) s.weights_agree();
    });
  }

  bool synchronizes_gradients() const {
    if constexpr (any_gradients) return gradients().synchronizes_gradients();
    else return false;
  }
  void gradient_ready(long begin, long end) {
    if constexpr (any_gradients) gradients().gradient_ready(begin, end);
  }
  void finish_gradients() {
    if constexpr (any_gradients) gradients().finish_gradients();
  }
  double gradient_factor() const {
    if constexpr (any_gradients) return gradients().gradient_factor();
    else return 1;
  }
  void reduce_statistics(double* values, long n) requires ReducesStatistics<Gradients> {
    gradients().reduce_statistics(values, n);
  }
  bool serves() const { return false; }
  void replayed() {
    if constexpr (any_gradients) gradients().replayed();
  }

  void average_buffers() {
    on_widest([](auto& s) { s.average_buffers(); });
  }
  void reduce(std::span<double> values) {
    on_widest([&](auto& s) { s.reduce(values); });
  }
  void barrier() {
    on_widest([](auto& s) { s.barrier(); });
  }
  std::vector<std::uint64_t> numbers_of_all(std::span<const std::uint64_t> own) {
    std::vector<std::uint64_t> all;
    on_widest([&](auto& s) { all = s.numbers_of_all(own); });
    return all;
  }
  std::vector<std::string> texts_of_all(const std::string& own) {
    std::vector<std::string> all;
    on_widest([&](auto& s) { all = s.texts_of_all(own); });
    return all;
  }
  comm::RankNames rank_names() const {
    return of_widest(comm::RankNames(), [](const auto& s) { return s.rank_names(); });
  }
  /// Those of a policy over all ranks have: whether a smaller group's have, another group may not know.
  bool all_met() const {
    return std::apply([this](const auto&... s) { return ((s.ranks() == ranks() && s.all_met()) || ...); }, policy_states_);
  }
  /// At the end of a fit, where the last policy that averages, else the last of all, is one over all ranks: what comes behind it
  /// may change weights.
  SameWeights same_weights() const {
    bool promised = false, averaged = false;
    const auto ask = [&](const auto& s) {
      constexpr bool averages = AveragesWeights<std::remove_cvref_t<decltype(s)>>;
      if (averages || !averaged) promised = s.ranks() == ranks() && s.same_weights() != SameWeights::never;
      averaged = averaged || averages;
    };
    std::apply([&](const auto&... s) { (ask(s), ...); }, policy_states_);
    return promised ? SameWeights::after_fit : SameWeights::never;
  }
  void check() const {
    std::apply([](const auto&... s) { (s.check(), ...); }, policy_states_);
  }
  /// What the first policy says that has such memory.
  std::string part_not_finite() {
    std::string found;
    each([&](auto& s, std::size_t) { found = found.empty() ? s.part_not_finite() : found; });
    return found;
  }
  double exposed_seconds() const {
    return std::apply([](const auto&... s) { return (s.exposed_seconds() + ...); }, policy_states_);
  }

  /// use(comm) with that of the policy that has the most ranks. False where it has none.
  template <class Use> bool with_widest_comm(const Use& use) {
    bool used = false;
    on_widest([&](auto& s) {
      if constexpr (Communicates<std::remove_reference_t<decltype(s)>>) use(s.comm()), used = true;
    });
    return used;
  }
  /// The I-th policy's state.
  template <std::size_t I> auto& part() { return std::get<I>(policy_states_); }

  /// Before a training is saved, on all ranks.
  void before_save() {
    each([](auto& s, std::size_t) { s.before_save(); });
  }
  void forget() {
    each([](auto& s, std::size_t) { s.forget(); });
  }
  /// What serialize() saves is this policy's alone.
  std::string saved_as() const {
    return std::apply([](const auto&... s) { return ((kind_of(s) + ";") + ...); }, policy_states_);
  }
  template <class Archive> void serialize(Archive& archive, unsigned) {
    each([&](auto& s, std::size_t) {
      if constexpr (KeepsState<std::remove_reference_t<decltype(s)>>) (archive & s);
    });
  }

 private:
  template <class S> static std::string kind_of(const S& s) {
    if constexpr (KeepsState<S>) return s.saved_as();
    else return {};
  }
  auto& gradients() requires(any_gradients) { return std::get<with_gradients>(policy_states_); }
  const auto& gradients() const requires(any_gradients) { return std::get<with_gradients>(policy_states_); }

  template <class Visit> void each(Visit&& visit) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (visit(std::get<I>(policy_states_), I), ...); }
    (std::make_index_sequence<count>{});
  }
  template <class Ask> bool any(Ask&& ask) {
    bool yes = false;
    each([&](auto& s, std::size_t) { yes = ask(s) || yes; });
    return yes;
  }
  template <class Visit> void on_widest(Visit&& visit) {
    each([&](auto& s, std::size_t i) {
      if (i == widest_) visit(s);
    });
  }
  template <class T, class Ask> T of_widest(T otherwise, Ask&& ask) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == widest_ ? void(otherwise = ask(std::get<I>(policy_states_))) : void()), ...);
    }
    (std::make_index_sequence<count>{});
    return otherwise;
  }

  /// Every rank of the widest communicator learns all groups, and finds the same fault or none.
  void check_groups() {
    const int me = rank(), n = ranks();
    if (n <= 1) return;
    std::vector<std::vector<detail::GroupMembership>> levels;
    each([&](auto& s, std::size_t i) {
      if constexpr (Communicates<std::remove_reference_t<decltype(s)>>) {
        if (i == widest_) return;
        const detail::GroupMembership mine{s.comm().broadcast(me, 0), s.comm().size()};
        (void)with_widest_comm([&](auto& comm) { levels.push_back(comm.all_gather(mine)); });
      }
    });
    const std::string fault = detail::nesting_fault(std::move(levels));
    if (!fault.empty())
      throw CommError("Compose: groups overlap wrongly: " + fault +
                      "; each group must lie within one of every wider policy's: split the world by rank / size");
  }

  std::tuple<PolicyStates...> policy_states_;
  std::size_t widest_ = 0;
};

template <class... PolicyStates> inline constexpr bool forwards_to_parts<ComposedPolicyState<PolicyStates...>> = true;

/// Several policies for one training: Compose{DataParallel{world, SyncEvery<4>{}}, ModelAverage{world, Period<100>{}}}. Their
/// hooks are called in this order. At most one of them exchanges gradients.
template <class... Policies> class Compose : public PolicyBase {
  static_assert(detail::assert_policies<Policies...>());
  template <class P, class R> using StateOf = decltype(std::declval<const detail::PolicyOrRefused<P>&>().bind(std::declval<R>()));

 public:
  explicit Compose(Policies... policies) : policies_(detail::PolicyOrRefused<Policies>(std::move(policies))...) {}

  /// Memory for the gradients, from the first policy that gives some: at most one exchanges gradients.
  std::shared_ptr<void> gradient_memory(std::size_t bytes) const {
    std::shared_ptr<void> memory;
    const auto ask = [&](const auto& p) { memory = memory ? memory : p.gradient_memory(bytes); };
    std::apply([&](const auto&... p) { (ask(p), ...); }, policies_);
    return memory;
  }

  template <class R> auto bind(const R& replica) const {
    using Composed = ComposedPolicyState<StateOf<Policies, const R&>...>;
    static_assert(detail::keep_whole_replicas<StateOf<Policies, const R&>...>,
                  "Compose: Sharded, Reproducible, GradientWorkers and ParameterServer fix what every rank has after each step, "
                  "and a Pipeline makes steps of its own, so that they go with no other policy");
    static_assert(detail::at_most_one<(0 + ... + int(SynchronizesGradients<StateOf<Policies, const R&>>))>,
                  "Compose: two of the policies exchange gradients, so they would be added up twice: keep one DataParallel");
    return std::apply([&](const auto&... p) { return Composed(replica, p...); }, policies_);
  }
  template <class Device> static constexpr bool fits = (detail::PolicyOrRefused<Policies>::template fits<Device> && ...);
  template <class Device> static consteval void assert_fits() {
    (detail::PolicyOrRefused<Policies>::template assert_fits<Device>(), ...);
  }

 private:
  std::tuple<detail::PolicyOrRefused<Policies>...> policies_;
};

}  // namespace skein::inline SKEIN_ABI::parallel
