// SPDX-License-Identifier: Apache-2.0
// TiedPairs: the parameters of a pipeline that are one, in two stages: where both sides are, the sum of their gradients, and
// equal values of both. Where the sides are in two processes, these exchange them.
#pragma once
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../comm/tags.hpp"
#include "../../core/error.hpp"
#include "../../device/memory.hpp"
#include "../../optim/groups.hpp"
#include "../../plan/placement.hpp"
#include "../../plan/program.hpp"
#include "pipeline_options.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// Where both sides of a tied pair are: the stage of each, and the offset there.
template <class Scalar> struct TiedPair {
  int stage[2] = {-1, -1};
  long offset[2] = {0, 0}, stored = 0;
  Arena<Scalar> other;  ///< the values of the side that another process has

  /// Those of a side, which are `mine` where this process has it.
  const Scalar* values(const Scalar* mine) const { return mine ? mine : other.data(); }
};

/// The tied pairs of a model, as the stages of this process (PipelineLocalStages) take part in them.
template <class Model, class LocalStages> class TiedPairs {
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using Pair = TiedPair<Scalar>;

 public:
  /// The stages stay where they are; nothing is asked of them yet.
  explicit TiedPairs(LocalStages& stages) : stages_(stages) {}
  TiedPairs(const TiedPairs&) = delete;

  /// Finds both sides of each pair of .tied. Throws ArgumentError for a name that is unknown or is there twice, for sides of
  /// different shapes, for rules that treat them differently, and for stages that step one by one.
  void find(const optim::Groups& groups) {
    const PipelineOptions& o = stages_.team->options;
    if (!on_host<Device> && !o.tied.empty())
      throw ArgumentError("Pipeline: .tied adds up gradients in the host's memory: give the model the device Cpu");
    std::set<std::string_view> seen;
    for (const TiedParameters& t : o.tied) {
      for (const std::string* name : {&t.first, &t.second})
        if (!seen.insert(*name).second)
          throw ArgumentError("Pipeline: .tied names '" + *name + "' twice: a parameter is tied to one other");
      Pair pair;
      const Side first = find_side(pair, 0, t.first, groups), second = find_side(pair, 1, t.second, groups);
      check(t, first, second);
      if (o.schedule == PipelineSchedule::pipedream && !o.table)
        throw ArgumentError("Pipeline: .tied wants one update a step, of all stages: PipeDream's stages step one by one");
      pair.other = Arena<Scalar>(static_cast<std::size_t>(pair.stored));
      pairs_.push_back(std::move(pair));
    }
  }
  /// Their requests have the numbers from `first` on; returns how many.
  int number_requests(int first) {
    first_request_ = first;
    return 2 * static_cast<int>(pairs_.size());
  }

  /// Both sides of each pair get the sum of their gradients.
  void exchange_gradients() {
    const auto gradients = [&](int stage) { return stages_.model->gradients(stage).data; };
    with_both(gradients, [](Pair& t, Scalar* const* sides) {
      const Scalar *first = t.values(sides[0]), *second = t.values(sides[1]);
      for (long i = 0; i < t.stored; ++i) {
        const Scalar sum = first[i] + second[i];
        if (sides[0]) sides[0][i] = sum;
        if (sides[1]) sides[1][i] = sum;
      }
    });
  }
  /// The second side of each pair becomes what the first is, with its optimizer's state: a file may have others.
  void tie() {
    if (pairs_.empty()) return;
    const auto weights = stages_.model->modify();  // of all stages
    const auto take_first = [](Pair& t, Scalar* const* sides) {
      if (sides[1]) std::copy_n(t.values(sides[0]), t.stored, sides[1]);
    };
    with_both([&](int stage) { return stages_.model->parameters(stage).data; }, take_first);
    for (int k = 0; k < stages_.optimizer().arrays(); ++k)
      with_both([&](int stage) { return stages_.of(stage).optimizer->array(k).data; }, take_first);
  }
  /// The first second side that touches [begin, end) of a stage: a pair is one parameter, and its first side counts in a norm.
  std::optional<plan::Range> second_side(int stage, long begin, long end) const {
    for (const Pair& t : pairs_)
      if (const long at = t.offset[1], last = at + t.stored; t.stage[1] == stage && at < end && begin < last)
        return plan::Range{at, last};
    return {};
  }

 private:
  struct Side {
    Extents extents{};
    optim::ParameterGroupRange rule{};  // what the rules say of it
  };

  static Side find_side(Pair& pair, int k, std::string_view name, const optim::Groups& groups) {
    const plan::Placement placement = Model::placement();
    Side side;
    for (const plan::Entry& e : Model::program.parameters()) {
      if (!(Model::program.name(e) == name)) continue;
      pair.stage[k] = static_cast<int>(placement.owners_of(e).begin);
      pair.offset[k] = e.offset - placement.part(pair.stage[k]).begin;
      pair.stored = e.stored;
      side.extents = e.extents;
      side.rule = optim::resolve(groups, {{name, e.offset, e.offset + e.stored, e.decay}}).front();
      side.rule.begin = side.rule.end = 0;
    }
    if (pair.stage[k] < 0)
      throw ArgumentError("Pipeline: .tied names '" + std::string(name) + "', which is no parameter of the network");
    return side;
  }
  static void check(const TiedParameters& t, const Side& first, const Side& second) {
    if (!(first.extents == second.extents))
      throw ArgumentError("Pipeline: .tied: '" + t.first + "' and '" + t.second + "' have different shapes");
    if (!(first.rule == second.rule))
      throw ArgumentError("Pipeline: .tied: the rules of .groups give '" + t.first + "' and '" + t.second +
                          "', which are one parameter, different rates or decays, or freeze one of them: name both in a rule");
  }
  /// use(pair, sides): the values of both sides in the array that array_of(stage) is; null where another process has the side,
  /// whose values have come then.
  template <class ArrayOf, class Use> void with_both(const ArrayOf& array_of, const Use& use) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      Pair& t = pairs_[i];
      Scalar* sides[2]{};
      for (int k = 0; k < 2; ++k)
        if (stages_.model->holds(t.stage[k])) sides[k] = array_of(t.stage[k]) + t.offset[k];
      for (int k = 0; k < 2; ++k)
        if (sides[k] && !sides[1 - k]) exchange(static_cast<int>(i), sides[k], t.stage[1 - k]);
      if (sides[0] || sides[1]) use(t, sides);
    }
  }
  /// The values of this process's side for those of the other's.
  void exchange(int i, const Scalar* mine, int other_stage) {
    Pair& t = pairs_[static_cast<std::size_t>(i)];
    const int other = stages_.team->process_of(other_stage), request = first_request_ + 2 * i,
              tag = comm::tags::tied_parameters + i;
    const std::size_t bytes = static_cast<std::size_t>(t.stored) * sizeof(Scalar);
    stages_.team->pipeline_link->receive(request, t.other.data(), bytes, other, tag);
    stages_.team->pipeline_link->send(request + 1, mine, bytes, other, tag);
    stages_.wait(request);
    stages_.wait(request + 1);
  }

  LocalStages& stages_;
  std::vector<Pair> pairs_;
  int first_request_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
