// SPDX-License-Identifier: Apache-2.0
// What a process holds of a pipeline: its stages, each with its executor, optimizer, slots and saved weights, and the pairs of
// parameters that are tied over stages. In which order stages run is not known here (pipeline_run.hpp).
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../../comm/public_call.hpp"
#include "../../device/host_side.hpp"
#include "../../optim/state.hpp"
#include "../../plan/pipeline_program.hpp"
#include "common_values.hpp"
#include "pipeline_policy_state.hpp"
#include "staged_model.hpp"
#include "tied_pairs.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// Messages of a stage that may be under way for each of its slots.
enum class SlotMessage { input, gradient_in, output, gradient_out };

template <class Model, class Optimizer> struct LocalStage {
  using Scalar = typename Model::Scalar;
  using Bound = optim::BoundOptimizer<Optimizer, Scalar, typename Model::device>;

  using Edge = HostSide<typename Model::Activation, typename Model::device>;

  Edge& edge(int slot, SlotMessage kind) { return edges[static_cast<std::size_t>(4 * slot + static_cast<int>(kind))]; }
  int request(int slot, SlotMessage kind) const { return first_request + 4 * slot + static_cast<int>(kind); }

  int stage = 0, slots = 0, versions = 0, first_request = 0;
  long stored = 0;
  const Scalar* gradient = nullptr;  // of the update that goes on
  Scalar* parameters = nullptr;
  bool fresh = true;             // nothing is in the gradients yet: of backward
  bool fresh_parameters = true;  // of its second half
  std::unique_ptr<typename Model::Stage> executor;
  std::vector<Edge> edges{};                                                    // four a slot: where messages are, of the host
  std::optional<HostSide<Scalar, typename Model::device>> gradients_on_host{};  // where pipelines are beside each other
  std::unique_ptr<Bound> optimizer;
};

template <class Model_, class Optimizer> class PipelineLocalStages {
 public:
  using Model = Model_;
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using Stage = LocalStage<Model, Optimizer>;

  /// Initial weights are agreed here: all ranks make theirs at the same time.
  template <class Loss>
  PipelineLocalStages(Model& whole, const Loss& loss, const Optimizer& given, std::shared_ptr<PipelineTeam> place)
      : model(&whole), team(std::move(place)), policy_state(team), squares_(on_host<Device> ? 0 : 1, whole.where()),
        squares_on_host_(squares_.span(), whole.where()) {
    (void)typename Stage::Bound(given, Model::program, whole.where(), plan::Range{});  // of nothing: tells wrong groups
    const Optimizer part = optim::for_a_part(given);
    for (int s = 0; s < Model::stages; ++s) {
      if (!model->holds(s)) continue;
      Stage local;
      local.stage = s;
      local.executor = model->executor(s, loss);
      local.stored = static_cast<long>(model->parameters(s).size);
      const auto& table = Model::table(s);
      local.optimizer =
          std::make_unique<typename Stage::Bound>(part, table, model->where(), plan::Range{0, table.stored_parameters}, true);
      if (team->replica_link) policy_state.buffers.emplace_back(model->buffers(s), model->where());
      stages.push_back(std::move(local));
    }
    tied.find(optim::groups_of(part));
    start();
    policy_state.tie = [this] { tied.tie(); };
  }
  PipelineLocalStages(const PipelineLocalStages&) = delete;

  Stage& of(int stage) {
    for (Stage& local : stages)
      if (local.stage == stage) return local;
    throw Error("pipeline: a line of another process's stage");
  }
  typename Stage::Bound& optimizer() { return *stages.front().optimizer; }

  /// The stages are to have the slots and saved versions that a program wants, where they have fewer. Returns whether one had.
  bool grow(const plan::PipelineProgram& p) {
    bool fewer = false;
    for (Stage& local : stages) {
      const auto stage = static_cast<std::size_t>(local.stage);
      fewer = fewer || p.slots[stage] > local.slots || p.versions[stage] > local.versions;
      local.slots = std::max(local.slots, p.slots[stage]);
      local.versions = std::max(local.versions, p.versions[stage]);
    }
    return fewer;
  }
  /// Memory for the slots that the stages have now, of micro-batches of at most so many samples, and numbers for their requests.
  void reserve(Workers& workers, long micro_batch, bool halves) {
    int requests = 0;
    for (Stage& local : stages) {
      if (local.slots == 0) local.slots = 1;
      nn::StageOptions o;
      o.batch = micro_batch;
      o.slots = local.slots;
      o.versions = local.versions;
      o.halves = halves;
      o.first = local.stage == 0;
      o.ordinal = Model::ordinal(local.stage);
      local.executor->reserve(workers, o);
      local.first_request = requests;
      requests += 4 * local.slots;
      make_edges(local, micro_batch);
      if (team->replica_link) local.gradients_on_host.emplace(local.executor->gradients(), model->where());
    }
    team->pipeline_link->reserve(std::max(1, requests + tied.number_requests(requests)));
  }
  long activation_bytes() const {
    long n = 0;
    for (const Stage& local : stages) n += local.executor->bytes();
    return n;
  }
  int slots() const {
    int n = 0;
    for (const Stage& local : stages) n += local.slots;
    return n;
  }

  double clock() const { return team->pipeline_link->now(); }
  /// The policy state knows how long.
  void wait(int request) {
    const double before = clock();
    team->pipeline_link->wait(request);
    policy_state.waited += clock() - before;
  }

  /// Gradients of a stage, with their tail, over the pipelines beside each other. The first of the tail are `sums` before and
  /// after.
  void sum_over_pipelines(Stage& local, std::span<Scalar> sums) {
    HostSide<Scalar, Device>& host = *local.gradients_on_host;
    host.read();
    Scalar* const tail = host.data() + host.size() - gradient_tail;
    std::copy(sums.begin(), sums.end(), tail);
    team->replica_link->sum(DeviceSpan<Scalar>(host.data(), host.size()));
    std::copy_n(tail, sums.size(), sums.begin());
    host.write();
  }
  /// The sum of the squares of what the optimizer takes as the gradients [begin, end) of a stage. A tied pair is one parameter:
  /// its first side counts.
  double sum_of_squares(Stage& local, const optim::StepCall<Scalar>& call, long begin, long end) {
    if (begin >= end) return 0;
    if (const auto second = tied.second_side(local.stage, begin, end))
      return sum_of_squares(local, call, begin, second->begin) + sum_of_squares(local, call, second->end, end);
    if constexpr (on_host<Device>) return local.optimizer->sum_of_squares(call, begin, end);
    else {
      local.optimizer->sum_of_squares(call, begin, end, squares_.data());
      squares_on_host_.read();
      return squares_on_host_.data()[0];
    }
  }

  Model* model;
  std::shared_ptr<PipelineTeam> team;
  PipelinePolicyState<Scalar, Device> policy_state;
  std::vector<Stage> stages;
  TiedPairs<Model, PipelineLocalStages> tied{*this};

 private:
  /// The first of them over the pipelines beside each other.
  void broadcast(DeviceSpan<Scalar, Device> values) {
    HostSide<Scalar, Device> host(values, model->where());
    host.read();
    team->replica_link->broadcast(host.data(), values.size * sizeof(Scalar), 0);
    host.write();
  }

  /// In the order of SlotMessage, with room for the sums behind a gradient.
  void make_edges(Stage& local, long samples) {
    local.edges.clear();
    if (team->processes == 1) return;
    const auto add = [&](auto* there, long pitch, long room) {
      local.edges.emplace_back(there, static_cast<std::size_t>(samples * pitch + room), model->where());
    };
    auto& e = *local.executor;
    const long in = e.input_pitch(), out = e.output_pitch(), room = gradient_tail;
    for (int slot = 0; slot < local.slots; ++slot) {
      add(e.input(slot), in, 0);
      add(e.gradient(slot), out, room);
      add(e.output(slot), out, 0);
      add(e.input_gradient(slot), in, room);
    }
  }
  void start() {
    const comm::InPublicCall here(comm::PublicCall::trainer);
    team->pipeline_link->reserve(1);
    if (const int requests = tied.number_requests(0); requests > 0) team->pipeline_link->reserve(requests);
    if (policy_state.ranks() == 1) return tied.tie();
    team->world->assert_same("the pipelines", common_values<Model>(team->options));
    if (team->replica_link)
      for (Stage& local : stages) {
        const auto p = model->parameters(local.stage), b = model->buffers(local.stage);
        broadcast(p);
        if (b.size > 0) broadcast(b);
      }
    tied.tie();
  }

  Arena<double, Device> squares_;  // a number of a device, [1]
  HostSide<double, Device> squares_on_host_;
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
