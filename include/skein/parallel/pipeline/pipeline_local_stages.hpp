// SPDX-License-Identifier: Apache-2.0
// What a process holds of a pipeline: its stages, each with its executor, optimizer, slots and kept weights, and the pairs of
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

  int stage = 0, slots = 0, kept = 0, first_request = 0;
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
    (void)typename Stage::Bound(given, Model::program);  // groups that match nothing are told here
    const Optimizer part = optim::for_a_part(given);
    for (int s = 0; s < Model::stages; ++s) {
      if (!model->holds(s)) continue;
      Stage h;
      h.stage = s;
      h.executor = model->executor(s, loss);
      h.stored = static_cast<long>(model->parameters(s).size);
      const auto& table = Model::table(s);
      h.optimizer =
          std::make_unique<typename Stage::Bound>(part, table, model->where(), plan::Range{0, table.stored_parameters}, true);
      if (team->data) policy_state.buffers.emplace_back(model->buffers(s), model->where());
      stages.push_back(std::move(h));
    }
    tied.find(optim::groups_of(part));
    start();
    policy_state.tie = [this] { tied.tie(); };
  }
  PipelineLocalStages(const PipelineLocalStages&) = delete;

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
      make_edges(h, micro_batch);
      if (team->data) h.gradients_on_host.emplace(h.executor->gradients(), model->where());
    }
    team->line->reserve(std::max(1, requests + tied.number_requests(requests)));
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

  /// Gradients of a stage, with their tail, over the pipelines beside each other. The first of the tail are `sums` before and
  /// after.
  void sum_over_pipelines(Stage& h, std::span<Scalar> sums) {
    HostSide<Scalar, Device>& host = *h.gradients_on_host;
    host.read();
    Scalar* const tail = host.data() + host.size() - gradient_tail;
    std::copy(sums.begin(), sums.end(), tail);
    team->data->sum(DeviceSpan<Scalar>(host.data(), host.size()));
    std::copy_n(tail, sums.size(), sums.begin());
    host.write();
  }
  /// The sum of the squares of what the optimizer takes as the gradients [begin, end) of a stage. A tied pair is one parameter:
  /// its first side counts.
  double sum_of_squares(Stage& h, const optim::StepCall<Scalar>& call, long begin, long end) {
    if (begin >= end) return 0;
    if (const auto second = tied.second_side(h.stage, begin, end))
      return sum_of_squares(h, call, begin, second->begin) + sum_of_squares(h, call, second->end, end);
    if constexpr (on_host<Device>) return h.optimizer->sum_of_squares(call, begin, end);
    else {
      h.optimizer->sum_of_squares(call, begin, end, squares_.data());
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
    team->data->broadcast(host.data(), values.size * sizeof(Scalar), 0);
    host.write();
  }

  /// In the order of SlotMessage, with room for the sums behind a gradient.
  void make_edges(Stage& h, long samples) {
    h.edges.clear();
    if (team->processes == 1) return;
    const auto add = [&](auto* there, long pitch, long room) {
      h.edges.emplace_back(there, static_cast<std::size_t>(samples * pitch + room), model->where());
    };
    auto& e = *h.executor;
    const long in = e.input_pitch(), out = e.output_pitch(), room = gradient_tail;
    for (int slot = 0; slot < h.slots; ++slot) {
      add(e.input(slot), in, 0);
      add(e.gradient(slot), out, room);
      add(e.output(slot), out, 0);
      add(e.input_gradient(slot), in, room);
    }
  }
  void start() {
    const comm::InPublicCall here(comm::PublicCall::trainer);
    team->line->reserve(1);
    if (const int requests = tied.number_requests(0); requests > 0) team->line->reserve(requests);
    if (policy_state.ranks() == 1) return tied.tie();
    team->world->assert_same("the pipelines", common_values<Model>(team->options));
    if (team->data)
      for (Stage& h : stages) {
        const auto p = model->parameters(h.stage), b = model->buffers(h.stage);
        broadcast(p);
        if (b.size > 0) broadcast(b);
      }
    tied.tie();
  }

  Arena<double, Device> squares_;  // a number of a device, [1]
  HostSide<double, Device> squares_on_host_;
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
