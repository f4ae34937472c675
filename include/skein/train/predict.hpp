// SPDX-License-Identifier: Apache-2.0
// Prediction in parts of what an executor has memory for: the loops that Trainer::predict and Predictor have in common.
// forward(batch, to) writes the outputs of a batch, dense.
#pragma once
#include <algorithm>
#include <concepts>
#include <string>

#include "../data/loader.hpp"
#include "../tensor/tensor.hpp"
#include "check_data.hpp"
#include "step/step_device.hpp"

namespace skein::inline SKEIN_ABI::train {

/// How a loader makes batches for this device: staged where it likes to fetch them, and staying as long as it may take.
template <class Model> data::LoaderOptions device_loader_options() {
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  data::LoaderOptions o;
  o.tokens = is_tokens<typename Model::input>;
  o.memory = StepDevice<Scalar, Device>::host_memory();
  o.held = StepDevice<Scalar, Device>::held;
  return o;
}

/// A tensor as it is; an expression evaluated. The result is bound to a reference where it is used.
template <class Element, class Device, TensorExpression E> decltype(auto) as_tensor(const E& x) {
  using Rows = Tensor<Element, E::rank, Device>;
  if constexpr (std::same_as<E, Rows>) return (x);
  else return Rows(x);
}

/// Whether batches can be read where x lies: each row's values one behind the other, and its rows too, with gaps or without.
template <class View> bool has_dense_rows(const View& x) {
  long step = 1;
  for (int i = View::rank - 1; i > 0; step *= x.extents.e[i--])
    if (x.extents.e[i] != 1 && x.strides.e[i] != step) return false;
  return x.strides.e[0] >= step;
}

namespace detail {
/// What messages call the rows of x; where x itself is one sample, with the way to make a row of samples of it.
template <class View> std::string rows_text(const View& x, const Extents& sample) {
  bool one = View::rank == sample.rank;
  for (int i = 0; one && i < View::rank; ++i) one = x.extent(i) == sample[i];
  if (!one) return "predict: the rows of x";
  std::string extents = "1";
  for (int i = 0; i < View::rank; ++i) extents += text(", {}", sample[i]);
  return "predict: x is one sample, and predict takes a row of samples, x.view().reshape(" + extents + "): its rows";
}
}  // namespace detail

/// The outputs for each row of x: (samples, outputs). Throws ShapeError where a row is no sample of the model's, ArgumentError
/// where x is on another GPU.
template <class Model, int Rank, class Forward> Tensor<typename Model::Scalar, 2, typename Model::device> predict_rows(
    const Model& model, TensorView<const typename Model::Element, Rank, typename Model::device> x, long capacity,
    const Forward& forward) {
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  if constexpr (!on_host<Device>)
    if (!(x.where == model.where()))
      throw ArgumentError(text("predict: the rows are on {} {}, the model on {}: move them with .to(model.where())", Device::name,
                               x.where.ordinal, model.where().ordinal));
  if (!has_dense_rows(x)) {
    const Tensor<typename Model::Element, Rank, Device> rows(x);
    return predict_rows<Model, Rank>(model, rows.view(), capacity, forward);
  }
  Extents sample{1, {1}};
  for (int i = 1; i < Rank; ++i) sample.e[i - 1] = static_cast<int>(x.extent(i)), sample.rank = i;
  nn::check_extents(sample, Model::input::extents, detail::rows_text(x, Model::input::extents), "a tensor of samples x ");
  const long n = x.extent(0), width = Model::output_extents.count();
  Tensor<Scalar, 2, Device> all(dims(n, width), model.where());
  data::Batch<Scalar, Device> batch;
  batch.pitch = x.strides[0];
  for (long at = 0; at < n; at += capacity) {
    if constexpr (is_tokens<typename Model::input>) batch.tokens = x.data + at * batch.pitch;
    else batch.x = x.data + at * batch.pitch;
    batch.count = batch.global_count = std::min(capacity, n - at);
    batch.first = at;
    forward(batch, all.data() + at * width);
  }
  return all;
}

/// The outputs for each sample of a data set, in its order.
template <class Model, class Forward>
auto predict_samples(const Model& model, const data::DatasetView& data, long capacity, const Forward& forward) {
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  const long n = static_cast<long>(data.size()), width = Model::output_extents.count();
  data::LoaderOptions o = device_loader_options<Model>();
  o.batch = std::max(1L, std::min(capacity, n));
  o.name = "the data set to predict";
  o.shuffle = false;
  o.prefetch = data::Prefetch::off;
  data::Loader<Scalar> loader(data, o);
  Tensor<Scalar, 2, Device> all(dims(n, width), model.where());
  for (const data::Batch<Scalar>& loaded : loader.epoch(0)) {
    data::Batch<Scalar> batch = loaded;
    batch.labels = nullptr;
    batch.targets = nullptr;
    forward(batch, all.data() + batch.first * width);
  }
  return all;
}

}  // namespace skein::inline SKEIN_ABI::train
