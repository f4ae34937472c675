// SPDX-License-Identifier: Apache-2.0
// Predictor: a model that is only used. It has what forward needs, and neither gradients nor an optimizer's state.
#pragma once
#include <concepts>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "../data/map.hpp"
#include "../nn/executor.hpp"
#include "../nn/loss/mse.hpp"
#include "check_data.hpp"
#include "weights_file.hpp"
#include "predict.hpp"
#include "predict_table.hpp"
#include "preparation.hpp"
#include "refused_predictor.hpp"

namespace skein::inline SKEIN_ABI {

/// How a Predictor computes: the samples at a time, its threads.
struct PredictorOptions {
  long capacity = 256;  ///< samples at a time; more are predicted in parts
  int threads = 0;      ///< 0: the cores of the affinity mask
  Denormals denormals = Denormals::flush;
};

namespace train::detail {
template <class Model> inline constexpr bool outlives_its_predictor = false;
}

/// sk::Predictor predictor{model};  predictor.load("training");  predictor.predict(x). The model must outlive it. Threads that
/// share one predict one after the other; with one each, on one model, at the same time. Beside a fit of the model on another
/// thread a prediction is an ArgumentError.
template <class Model> class Predictor {
 public:
  using Scalar = typename Model::Scalar;
  using Element = typename Model::Element;
  using Device = typename Model::device;
  static_assert(!Model::sizes.carries_state,
                "a network with Stateful layers is evaluated by an Executor, whose reset_states() says where a sequence begins");

  explicit Predictor(Model& model, const PredictorOptions& options = {})
      : executor_(model, {},
                  {.capacity = options.capacity, .threads = options.threads, .denormals = options.denormals, .training = false}) {
    executor_.step_memory().wait();
  }
  /// A model that ends with the statement is refused.
  explicit Predictor(Model&& model, const PredictorOptions& options = {}) : Predictor(model, options) {
    static_assert(train::detail::outlives_its_predictor<Model>,
                  "the model must outlive its predictor: give it a name, sk::Model<...> model; sk::Predictor predictor{model}");
  }

  /// The weights of what Trainer::save or train::save_weights wrote; where all are taken, also what Trainer::keep put beside
  /// them, in place of what another file had. Throws FileError for a file of another network; nothing is changed then.
  void load(const std::string& path, const LoadOptions& options = {}) {
    const std::lock_guard alone(calls_);
    const nn::WeightsUse::Training changes(executor_.model().weights().use());
    train::KeptObjects beside;
    train::load_weights(path, executor_.model(), options, &beside);
    if (!options.whole()) return;  // of a head, which the body's file prepares samples for
    kept_ = std::move(beside);
    normalization_ = kept_.has(data::Normalization::kept_as)
                         ? kept_.template get<data::Normalization>(data::Normalization::kept_as)
                         : data::Normalization{};
  }
  /// What Trainer::keep put into the file. Throws ArgumentError where there is no such object.
  template <class T> T kept(std::string_view name = T::kept_as) const {
    const std::lock_guard alone(calls_);
    return kept_.template get<T>(name);
  }

  /// The outputs for each row of x: (samples, outputs). If the file keeps a Normalization (Trainer::keep(set.normalization())), x
  /// is raw, and a normalised copy of it is made on the host. Throws ArgumentError where the file keeps a TableEncoder.
  template <int Rank> Tensor<Scalar, 2, Device> predict(TensorView<const Element, Rank, Device> x) {
    const std::lock_guard alone(calls_);
    train::refuse_rows_of_tensor(kept_);
    if constexpr (!is_tokens<typename Model::input>)
      if (!normalization_.unknown()) return predict_rows<Rank>(normalized(x));
    return predict_rows<Rank>(x);
  }
  /// The outputs for the rows of a tensor, or of an expression, which is evaluated: predict(x / 255).
  template <TensorExpression E> Tensor<Scalar, 2, Device> predict(const E& x) {
    const auto& rows = train::as_tensor<Element, Device>(x);
    return predict<E::rank>(rows.view());
  }
  /// The outputs for each sample of a data set. Throws ArgumentError for one that is normalised already where the file keeps a
  /// Normalization. Where it keeps a TableEncoder, the samples are what that encodes: encoder.encode(table).
  Tensor<Scalar, 2, Device> predict(const data::DatasetView& data) {
    const std::lock_guard alone(calls_);
    return predict_samples(data);
  }

  /// The outputs for each row of a table, as it comes: the file's TableEncoder encodes it, and outputs are in the units of the
  /// table. Throws ArgumentError where the file keeps none (Trainer::keep(encoder)), and as the encoder does.
  template <std::same_as<data::Table> Rows> Tensor<Scalar, 2> predict(const Rows& table) {
    const std::lock_guard alone(calls_);
    return train::predict_table<Model>(kept_.template get<data::TableEncoder>(data::TableEncoder::kept_as), table,
                                       [this](const data::DatasetView& samples) { return predict_samples(samples); });
  }

  /// Bytes that it and the model hold.
  MemoryPlan memory_plan() const { return executor_.memory_plan(); }

 private:
  using Executor = skein::Executor<Model, nn::Mse>;  // without targets nothing is compared
  // Under the lock: a load() of another thread changes what is kept.
  template <int Rank> Tensor<Scalar, 2, Device> predict_rows(TensorView<const Element, Rank, Device> x) {
    const nn::WeightsUse::Pass reads(executor_.model().weights().use());
    return finished(train::predict_rows<Model, Rank>(executor_.model(), x, executor_.capacity(), forward()));
  }
  Tensor<Scalar, 2, Device> predict_samples(const data::DatasetView& data) {
    train::check_samples<Model>(data, "predicted");
    train::check_kept_encoder(kept_, data, "predict");
    if constexpr (!is_tokens<typename Model::input>)
      if (!normalization_.unknown())
        return predict_prepared(data::map(data, applied_to(data.normalization(), data.sample_extents())));
    return predict_prepared(data);
  }
  Tensor<Scalar, 2, Device> predict_prepared(const data::DatasetView& data) {
    const nn::WeightsUse::Pass reads(executor_.model().weights().use());
    return finished(train::predict_samples(executor_.model(), data, executor_.capacity(), forward()));
  }
  /// The next thread's calls go to a stream of its own, and into the same memory.
  Tensor<Scalar, 2, Device> finished(Tensor<Scalar, 2, Device> outputs) {
    executor_.step_memory().wait();
    return outputs;
  }
  data::detail::KeptNormalization applied_to(const data::Normalization& set, const Extents& sample) const {
    data::check_raw(normalization_, set, sample);
    return {normalization_, set.divisor != 1};
  }
  template <int Rank> Tensor<Element, Rank, Device> normalized(TensorView<const Element, Rank, Device> x) const {
    if (!train::has_dense_rows(x)) {
      const Tensor<Element, Rank, Device> dense(x);
      return normalized<Rank>(dense.view());
    }
    Extents sample{1, {1}};
    for (int i = 1; i < Rank; ++i) sample.e[i - 1] = static_cast<int>(x.extent(i)), sample.rank = i;
    const auto apply = applied_to({}, sample);
    Tensor<Element, Rank> rows(x.extents);
    const long each = sample.count(), pitch = x.strides[0];
    for (long i = 0; i < x.extent(0); ++i) {
      Element* row = rows.data() + i * each;
      Copy<Cpu, Device>::run(row, x.data + i * pitch, static_cast<std::size_t>(each) * sizeof(Element), Cpu{}, x.device());
      apply(std::span(row, static_cast<std::size_t>(each)));
    }
    return rows.template to<Device>(x.device());
  }
  auto forward() {
    return [this](const auto& batch, Scalar* to) {
      (void)executor_.evaluate(batch);
      [[maybe_unused]] const auto here = executor_.step_memory().enter();
      constexpr long width = Model::output_extents.count();
      ops::copy_rows<Device>(to, width, executor_.outputs(), Executor::output_pitch, batch.count, width);
    };
  }

  Executor executor_;
  mutable std::mutex calls_;  // of several threads, one after the other
  train::KeptObjects kept_;
  data::Normalization normalization_;
};

}  // namespace skein::inline SKEIN_ABI
