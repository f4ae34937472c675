// SPDX-License-Identifier: Apache-2.0
// What a process holds of a pipeline: its stages, each with its executor, optimizer, slots and kept weights; the parameters that
// are tied over stages; and, while a file is written or read, the whole network's arrays. In which order stages run is not known
// here (pipeline_run.hpp).
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../optim/state.hpp"
#include "pipeline_team.hpp"
#include "staged_model.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// Messages of a stage that may be under way for each of its slots.
enum class SlotMessage { input, gradient_in, output, gradient_out };

template <class Model, class Optimizer> struct LocalStage {
  using Scalar = typename Model::Scalar;
  using Bound = optim::BoundOptimizer<Optimizer, Scalar, typename Model::device>;

  int request(int slot, SlotMessage kind) const { return first_request + 4 * slot + static_cast<int>(kind); }

  int stage = 0, slots = 0, kept = 0, first_request = 0;
  long stored = 0;
  const Scalar* gradient = nullptr;
  bool fresh = true;             // nothing is in the gradients yet: of backward
  bool fresh_parameters = true;  // of its second half
  std::unique_ptr<typename Model::Stage> executor;
  std::unique_ptr<Bound> optimizer;
};

template <class Model, class Optimizer> class PipelineLocalStages {
 public:
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using Stage = LocalStage<Model, Optimizer>;
  static constexpr int first_tied_tag = 31000, file_tag = 31999;  // below: those of micro-batches

  /// Initial weights are agreed here: all ranks make theirs at the same time.
  template <class Loss>
  PipelineLocalStages(Model& whole, const Loss& loss, const Optimizer& given, std::shared_ptr<PipelineTeam> place)
      : model(&whole), team(std::move(place)), policy_state(team) {
    (void)typename Stage::Bound(given, Model::program);  // groups that match nothing are told here
    const Optimizer part = optim::for_a_part(given);
    for (int s = 0; s < Model::stages; ++s) {
      if (!model->holds(s)) continue;
      Stage h;
      h.stage = s;
      h.executor = model->executor(s, loss);
      h.stored = static_cast<long>(model->parameters(s).size);
      h.optimizer = std::make_unique<typename Stage::Bound>(part, Model::table(s));
      policy_state.buffers.push_back(model->buffers(s));
      stages.push_back(std::move(h));
    }
    find_tied();
    start();
  }

  Stage& of(int stage) {
    for (Stage& h : stages)
      if (h.stage == stage) return h;
    throw Error("pipeline: a line of another process's stage");
  }
  typename Stage::Bound& optimizer() { return *stages.front().optimizer; }

  /// Memory for the slots that the stages have now, of micro-batches of at most so many samples, and numbers for their requests.
  void reserve(Workers& workers, long micro_batch, bool halves) {
    int requests = 0;
    for (Stage& h : stages) {
      if (h.slots == 0) h.slots = 1;
      nn::StageOptions o;
      o.batch = micro_batch;
      o.slots = h.slots;
      o.kept = h.kept;
      o.halves = halves;
      o.first = h.stage == 0;
      o.ordinal = Model::ordinal(h.stage);
      h.executor->reserve(workers, o);
      h.first_request = requests;
      requests += 4 * h.slots;
    }
    tied_requests_ = requests;
    team->line->reserve(std::max(1, requests + 2 * static_cast<int>(tied_.size())));
  }
  long activation_bytes() const {
    long n = 0;
    for (const Stage& h : stages) n += h.executor->bytes();
    return n;
  }
  int slots() const {
    int n = 0;
    for (const Stage& h : stages) n += h.slots;
    return n;
  }

  double clock() const { return team->line->now(); }
  /// The policy state knows how long.
  void wait(int request) {
    const double before = clock();
    team->line->wait(request);
    policy_state.waited += clock() - before;
  }

  /// Both sides of each tied pair get the sum of their gradients.
  void exchange_tied() {
    with_both(true, [&](Tied& t, Scalar* const* sides) {
      const Scalar *first = sides[0] ? sides[0] : t.other.data(), *second = sides[1] ? sides[1] : t.other.data();
      for (long i = 0; i < t.stored; ++i) {
        const Scalar sum = first[i] + second[i];
        if (sides[0]) sides[0][i] = sum;
        if (sides[1]) sides[1][i] = sum;
      }
    });
  }

  // ---- files: those of the whole network in one model ----------------------------------------------------------------

  /// Array 0: parameters, 1: buffers, then the optimizer's. Rank 0 has them between gather() and drop().
  Arena<Scalar>& whole(std::size_t array) { return make_whole()[array]; }
  /// All ranks: brings the stages' arrays together on rank 0.
  void gather() {
    if (team->replica > 0) return;
    if (team->process == 0) make_whole();
    for (std::size_t a = 0; a < static_cast<std::size_t>(2 + optimizer().arrays()); ++a)
      for (int s = 0; s < Model::stages; ++s) {
        const int from = team->process_of(s);
        const plan::Range r = a == 1 ? Model::buffer_range(s) : Model::range(s);
        if (r.begin == r.end || (team->process != 0 && from != team->process)) continue;
        const std::size_t bytes = static_cast<std::size_t>(r.end - r.begin) * sizeof(Scalar);
        if (from == 0) {
          if (team->process == 0) std::memcpy(whole_[a].data() + r.begin, mine(a, s), bytes);
        } else if (team->process == 0) {
          team->line->receive(0, whole_[a].data() + r.begin, bytes, from, file_tag);
          team->line->wait(0);
        } else {
          team->line->send(0, mine(a, s), bytes, 0, file_tag);
          team->line->wait(0);
        }
      }
  }
  void drop() { whole_.clear(); }
  /// Each stage's part of one of the optimizer's arrays.
  void set_state(int k, const Scalar* whole) {
    for (Stage& h : stages)
      std::memcpy(mine(static_cast<std::size_t>(2 + k), h.stage), whole + Model::range(h.stage).begin,
                  static_cast<std::size_t>(h.stored) * sizeof(Scalar));
  }
  /// Each stage takes its own of whole(0) and whole(1), which were written.
  void scatter() {
    for (Stage& h : stages) {
      std::memcpy(mine(0, h.stage), whole_[0].data() + Model::range(h.stage).begin,
                  static_cast<std::size_t>(h.stored) * sizeof(Scalar));
      const plan::Range b = Model::buffer_range(h.stage);
      if (b.end > b.begin)
        std::memcpy(mine(1, h.stage), whole_[1].data() + b.begin, static_cast<std::size_t>(b.end - b.begin) * sizeof(Scalar));
    }
    drop();
  }

  Model* model;
  std::shared_ptr<PipelineTeam> team;
  PipelinePolicyState<Scalar> policy_state;
  std::vector<Stage> stages;

 private:
  struct Tied {  // one side of a pair that this process has, or both
    int stage[2] = {-1, -1};
    long offset[2] = {0, 0}, stored = 0;
    Arena<Scalar> other;
  };

  void start() {
    team->line->reserve(1);
    if (policy_state.ranks() == 1) return tie_weights();
    Fnv1a f;
    const PipelineOptions& o = team->options;
    f.add(Model::fingerprint)
        .add(sizeof(Scalar))
        .add(static_cast<std::uint64_t>(o.schedule))
        .add(static_cast<std::uint64_t>(o.micro_batches));
    f.add(static_cast<std::uint64_t>(o.micro_batch))
        .add(static_cast<std::uint64_t>(o.replicas))
        .add(static_cast<std::uint64_t>(o.vertical_sync));
    for (int s = 0; s < Model::stages; ++s) f.add(static_cast<std::uint64_t>(Model::range(s).end));
    for (const TiedParameters& t : o.tied) f.add(std::string_view(t.first)).add(std::string_view(t.second));
    team->world->assert_same("the pipelines (network, stages, input shape, scalar, options)", f.value());
    if (team->data)
      for (Stage& h : stages) {
        const auto p = model->parameters(h.stage), b = model->buffers(h.stage);
        team->data->broadcast(p.data, p.size * sizeof(Scalar), 0);
        if (b.size > 0) team->data->broadcast(b.data, b.size * sizeof(Scalar), 0);
      }
    tie_weights();
  }

  std::vector<Arena<Scalar>>& make_whole() {
    if (whole_.empty()) {
      whole_.emplace_back(static_cast<std::size_t>(Model::sizes.stored));
      whole_.emplace_back(static_cast<std::size_t>(Model::sizes.buffers));
      for (int k = 0; k < optimizer().arrays(); ++k) whole_.emplace_back(static_cast<std::size_t>(Model::sizes.stored));
    }
    return whole_;
  }
  /// This process's part of an array.
  Scalar* mine(std::size_t array, int stage) {
    if (array == 0) return model->parameters(stage).data;
    return array == 1 ? model->buffers(stage).data : of(stage).optimizer->array(static_cast<int>(array) - 2).data;
  }

  // ---- tied parameters -----------------------------------------------------------------------------------------------

  void find_tied() {
    for (const TiedParameters& t : team->options.tied) {
      Tied tied;
      const std::string_view names[2] = {t.first, t.second};
      Extents extents[2];
      for (int k = 0; k < 2; ++k) {
        for (const plan::Entry& e : Model::program.parameters()) {
          if (!(Model::program.name(e) == names[k])) continue;
          for (int s = 0; s < Model::stages; ++s)
            if (e.offset >= Model::range(s).begin && e.offset < Model::range(s).end)
              tied.stage[k] = s, tied.offset[k] = e.offset - Model::range(s).begin;
          tied.stored = e.stored;
          extents[k] = e.extents;
        }
        if (tied.stage[k] < 0)
          throw ArgumentError("Pipeline: .tied names '" + std::string(names[k]) + "', which is no parameter of the network");
      }
      if (!(extents[0] == extents[1]))
        throw ArgumentError("Pipeline: .tied: '" + t.first + "' and '" + t.second + "' have different shapes");
      if (team->options.schedule == PipelineSchedule::pipedream && !team->options.table)
        throw ArgumentError("Pipeline: .tied wants one update a step, of all stages: PipeDream's stages step one by one");
      tied.other = Arena<Scalar>(static_cast<std::size_t>(tied.stored));
      tied_.push_back(std::move(tied));
    }
  }
  Scalar* side(const Tied& t, int k, bool gradients) {
    if (!model->holds(t.stage[k])) return nullptr;
    return (gradients ? model->gradients(t.stage[k]) : model->parameters(t.stage[k])).data + t.offset[k];
  }
  /// The values of both sides: where one is another process's, the two exchange.
  template <class Use> void with_both(bool gradients, Use&& use) {
    for (std::size_t i = 0; i < tied_.size(); ++i) {
      Tied& t = tied_[i];
      Scalar* sides[2] = {side(t, 0, gradients), side(t, 1, gradients)};
      if (!sides[0] && !sides[1]) continue;
      for (int k = 0; k < 2; ++k)
        if (sides[k] && !sides[1 - k]) {
          const int other = team->process_of(t.stage[1 - k]), r = tied_requests_ + 2 * static_cast<int>(i),
                    tag = first_tied_tag + static_cast<int>(i);
          const std::size_t bytes = static_cast<std::size_t>(t.stored) * sizeof(Scalar);
          team->line->receive(r, t.other.data(), bytes, other, tag);
          team->line->send(r + 1, sides[k], bytes, other, tag);
          wait(r);
          wait(r + 1);
        }
      use(t, sides);
    }
  }
  void tie_weights() {
    if (tied_.empty()) return;
    tied_requests_ = 0;
    team->line->reserve(2 * static_cast<int>(tied_.size()));
    with_both(false, [&](Tied& t, Scalar* const* sides) {
      if (!sides[1]) return;
      const Scalar* first = sides[0] ? sides[0] : t.other.data();
      for (long i = 0; i < t.stored; ++i) sides[1][i] = first[i];
    });
    (void)model->modify();  // all of them
  }

  std::vector<Tied> tied_;
  std::vector<Arena<Scalar>> whole_;
  int tied_requests_ = 0;  // the first of theirs
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
