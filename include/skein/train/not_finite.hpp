// SPDX-License-Identifier: Apache-2.0
// A loss, or a weight, that is not a finite number: what fit does about it, the sentence that it stops with, and the search for
// the first layer whose output is not finite. The search runs only when there is something to search for: it sets the weights
// behind a layer to zero, since zero times what is not finite is not finite, and looks whether the loss becomes finite.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../nn/loss/loss.hpp"
#include "../optim/groups.hpp"
#include "../plan/program.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

/// What Trainer::fit does where the loss of a step is NaN or infinite, or the norm of gradients that are clipped. stop: it throws
/// NotFiniteError. skip: it leaves the step out, as if its batch were not there. go_on: it makes the step.
enum class OnNan { stop, skip, go_on };

/// What fit throws where the loss is not a finite number: step, rate, norm of the gradients, first layer that is not finite. Also
/// where the last step of an epoch, or the one before a commit, has left weights, running statistics, arrays of the optimizer or
/// factors of Kfac that are none: no loss has shown them yet.
class NotFiniteError : public Error {
 public:
  explicit NotFiniteError(const std::string& what, SourceLocation where = SourceLocation::current()) : Error(what, where) {}
};

namespace train {

/// The step whose loss, or what it made of the weights, is not finite, as the sentence has it.
struct NotFiniteStep {
  std::int64_t step = 0;  ///< from 1
  int epoch = 0;          ///< from 1
  double loss = 0, rate = 0;
  double norm = 0;          ///< of the gradients as backward left them, or of the last step that was clipped; 0: not known
  bool found_late = false;  ///< some steps may have been made since
  bool made = false;        ///< this step was made all the same, as the stages of a pipeline do
  bool own_loss = false;    ///< the loss is this rank's, and the step may have had gradients of other ranks
  std::string layer;        ///< what first_not_finite() says
  std::string part;         ///< what is not finite of what the step has left; then its own loss was
};
/// What fit says of it.
std::string not_finite_message(const NotFiniteStep& step);

/// A layer that has parameters: its name, what it is, and its range of the parameters' arena.
struct LayerRange {
  std::string name, kind;
  long begin = 0, end = 0;
};
/// The layers with parameters of a program, in the order in which forward runs them.
template <class Program> std::vector<LayerRange> layers_with_parameters(const Program& program) {
  std::vector<LayerRange> layers;
  for (const plan::LayerNode& o : program.layers())
    if (o.parameters > 0)
      layers.push_back(
          {std::string(std::string_view(program.name(o))), std::string(o.kind), o.parameter, o.parameter + o.parameters});
  return layers;
}

/// "the running statistic '1.running_var' is not finite", of the first among the buffers `part`; "" where there is none.
template <class Scalar> std::string first_buffer_not_finite(std::span<const Scalar> values, plan::Range part,
                                                            std::span<const plan::Entry> buffers,
                                                            std::span<const plan::PathPart> parts);
/// "the optimizer's array 'optimizer/1/0.weight' is not finite", as files name it, of the first among the rows of its `part` that
/// are not frozen; "" where there is none. An infinite second moment makes steps of 0: no loss ever shows it.
template <class Scalar> std::string first_state_not_finite(std::span<const Scalar> values, plan::Range part,
                                                           const std::string& prefix, std::span<const plan::Entry> parameters,
                                                           std::span<const plan::PathPart> parts,
                                                           std::span<const optim::ParameterGroupRange> ranges = {});
/// "a weight of layer '2' (Linear<10>) is not finite", of the first layer with such a weight among the parameters `part`, whose
/// values are given; "" where there is none. Ranges that are frozen are not looked at: a mask may be infinite.
template <class Scalar> std::string first_weight_not_finite(std::span<const Scalar> values, plan::Range part,
                                                            const std::vector<LayerRange>& layers,
                                                            std::span<const optim::ParameterGroupRange> ranges = {});

/// "the first layer whose output is not finite is '2' (Linear<10>)", or what else is not finite. finite(weights): whether the
/// loss of the batch is, with these weights; outputs_finite(): whether the network's outputs were in that call.
template <class Scalar> std::string first_not_finite(std::span<const Scalar> weights, const std::vector<LayerRange>& layers,
                                                     const std::function<bool(std::span<const Scalar>)>& finite,
                                                     const std::function<bool()>& outputs_finite);

/// The norm of the gradients of a train step on the host as they are, without those of frozen parameters, over this rank's
/// workers.
template <class TrainStep> double norm_of_gradients(TrainStep& train_step) {
  auto& run = train_step.executor();
  const auto whole = train_step.model().gradients();
  std::vector<double> sums(whole.begin(), whole.end());
  for (int w = 1; w < run.workers().size() && !train_step.policy_state().synchronizes_gradients(); ++w)
    for (const plan::Range& r : run.summed_ranges())
      for (long i = r.begin; i < r.end; ++i) sums[static_cast<std::size_t>(i)] += static_cast<double>(run.gradients(w)[i]);
  double squares = 0;
  for (const optim::ParameterGroupRange& r : train_step.optimizer().ranges())
    for (long i = r.begin; i < r.end && !r.frozen; ++i)
      squares += sums[static_cast<std::size_t>(i)] * sums[static_cast<std::size_t>(i)];
  return std::sqrt(squares);
}

/// Says what first_not_finite() says of a batch whose step has just been left out. The weights are afterwards what they were.
template <class TrainStep, class Batch> std::string first_layer_not_finite(TrainStep& train_step, const Batch& batch) {
  using Scalar = typename TrainStep::Scalar;
  auto& model = train_step.model();
  const std::vector<Scalar> weights(model.parameters().begin(), model.parameters().end());
  const auto set = [&model](std::span<const Scalar> values) {
    const auto lease = model.modify();
    std::copy(values.begin(), values.end(), lease.data());
  };
  const struct Restore {  // also where a loss of the user's, or memory, throws
    const decltype(set)& set_to;
    const std::vector<Scalar>& weights;
    ~Restore() { set_to({weights.data(), weights.size()}); }
  } restore{set, weights};
  return first_not_finite<Scalar>(
      {weights.data(), weights.size()}, layers_with_parameters(model.program),
      [&](std::span<const Scalar> some) {
        set(some);
        const nn::LossSums sums = train_step.evaluate(batch);
        return std::isfinite(sums.loss);
      },
      [&] {
        const Scalar* y = train_step.outputs();
        return std::all_of(y, y + batch.count * TrainStep::OutputPitch, [](Scalar v) { return std::isfinite(v); });
      });
}

#if SKEIN_COMPILED
extern template std::string first_buffer_not_finite<float>(std::span<const float>, plan::Range, std::span<const plan::Entry>,
                                                           std::span<const plan::PathPart>);
extern template std::string first_buffer_not_finite<double>(std::span<const double>, plan::Range, std::span<const plan::Entry>,
                                                            std::span<const plan::PathPart>);
extern template std::string first_state_not_finite<float>(std::span<const float>, plan::Range, const std::string&,
                                                          std::span<const plan::Entry>, std::span<const plan::PathPart>,
                                                          std::span<const optim::ParameterGroupRange>);
extern template std::string first_state_not_finite<double>(std::span<const double>, plan::Range, const std::string&,
                                                           std::span<const plan::Entry>, std::span<const plan::PathPart>,
                                                           std::span<const optim::ParameterGroupRange>);
extern template std::string first_weight_not_finite<float>(std::span<const float>, plan::Range, const std::vector<LayerRange>&,
                                                           std::span<const optim::ParameterGroupRange>);
extern template std::string first_weight_not_finite<double>(std::span<const double>, plan::Range, const std::vector<LayerRange>&,
                                                            std::span<const optim::ParameterGroupRange>);
extern template std::string first_not_finite<float>(std::span<const float>, const std::vector<LayerRange>&,
                                                    const std::function<bool(std::span<const float>)>&,
                                                    const std::function<bool()>&);
extern template std::string first_not_finite<double>(std::span<const double>, const std::vector<LayerRange>&,
                                                     const std::function<bool(std::span<const double>)>&,
                                                     const std::function<bool()>&);
#endif

}  // namespace train
}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "not_finite.ipp"
#endif
