// SPDX-License-Identifier: Apache-2.0
// What a Trainer asks of a train step: of TrainStep, and of what a policy brings in its place, as Pipeline does.
#pragma once
#include <concepts>
#include <cstdint>
#include <string_view>

#include "../data/batch.hpp"
#include "../device/span.hpp"
#include "../nn/executor_options.hpp"
#include "../nn/loss/loss.hpp"
#include "../optim/step_options.hpp"
#include "../plan/program.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// What is called for each part of an array that a process has.
template <class Scalar> struct VisitsPart {
  void operator()(plan::Range, Scalar*) const {}
};
}  // namespace detail

/// The arrays of a training, by the numbers in parallel::training_arrays: the parts of them that this process has; each from a
/// whole one of the host; and whole ones, on rank 0 between gather(), which all ranks call, and drop().
template <class A, class Scalar, class Device>
concept TrainingArrays = requires(A& arrays, int array, const Scalar* whole, const detail::VisitsPart<Scalar>& visit) {
  { arrays.count() } -> std::convertible_to<int>;
  arrays.each_part(array, visit);
  arrays.set(array, whole);
  { arrays.whole(array) } -> std::convertible_to<DeviceSpan<Scalar, Device>>;
  arrays.gather();
  arrays.set_updates(arrays.updates_after(std::int64_t{1}));
  arrays.drop();
};

/// The state that a policy has for a training, and a model, a loss and a bound optimizer to make steps with.
template <class T> concept BindsTraining = requires(T& t, const T& c) {
  t.model().modify();
  c.loss();
  t.optimizer().optimizer().lr;
  { t.optimizer().arrays() } -> std::convertible_to<int>;
  { t.policy_state() } -> std::same_as<typename T::PolicyState&>;
  { c.threads() } -> std::convertible_to<int>;
};

/// Makes steps for a Trainer, evaluates, and has what is saved of a training.
template <class T> concept IsTrainStep = BindsTraining<T> &&
    requires(T& t, const T& c, const data::Batch<typename T::Scalar>& batch, long samples, std::int64_t steps) {
  t.reserve(ExecutorOptions{});  // memory for batches of .capacity samples
  { c.reserved() } -> std::same_as<bool>;
  { c.capacity() } -> std::convertible_to<long>;
  t.prepare(samples);
  { t.step(batch, optim::StepOptions{}) } -> std::same_as<typename T::Sums>;
  t.give_up_accumulation();  // batches of a step that will not be made
  { t.evaluate(batch, true) } -> std::same_as<typename T::Sums>;
  { c.outputs() } -> std::convertible_to<const typename T::Scalar*>;  // of the batch that was evaluated
  t.step_memory().enter();
  { c.totals() } -> std::convertible_to<nn::LossSums>;
  t.set_totals(nn::LossSums{});
  { c.steps() } -> std::convertible_to<std::int64_t>;
  t.set_steps(steps);
  { c.updates_of(samples) } -> std::convertible_to<std::int64_t>;
  { c.left_out() } -> std::same_as<bool>;
  { c.gradient_norm() } -> std::convertible_to<double>;
  { c.note() } -> std::convertible_to<std::string_view>;
  { t.arrays() } -> TrainingArrays<typename T::Scalar, typename T::Device>;
};

}  // namespace skein::inline SKEIN_ABI::train
