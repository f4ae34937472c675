// SPDX-License-Identifier: Apache-2.0
// Predictor: a model that is only used. It has what forward needs, and neither gradients nor an optimizer's state.
#pragma once
#include <concepts>
#include <span>
#include <string>
#include <string_view>

#include "../data/table_encoder.hpp"
#include "../nn/executor.hpp"
#include "../nn/loss/mse.hpp"
#include "data_check.hpp"
#include "weights_file.hpp"
#include "predict.hpp"

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

/// sk::Predictor predictor{model};  predictor.load("training");  predictor.predict(x). The model must outlive it.
template <class Model> class Predictor {
 public:
  using Scalar = typename Model::Scalar;
  using Element = typename Model::Element;
  using Device = typename Model::device;

  explicit Predictor(Model& model, const PredictorOptions& options = {})
      : executor_(model, {},
                  {.capacity = options.capacity, .threads = options.threads, .denormals = options.denormals, .training = false}) {
  }
  /// A model that ends with the statement is refused.
  explicit Predictor(Model&& model, const PredictorOptions& options = {}) : Predictor(model, options) {
    static_assert(train::detail::outlives_its_predictor<Model>,
                  "the model must outlive its predictor: give it a name, sk::Model<...> model; sk::Predictor predictor{model}");
  }

  /// The weights of what Trainer::save or train::save_weights wrote, and what Trainer::keep put beside them. Throws FileError for
  /// a file of another network.
  void load(const std::string& path, const LoadOptions& options = {}) {
    train::load_weights(path, executor_.model(), options, &kept_);
  }
  /// What Trainer::keep put into the file. Throws ArgumentError where there is no such object.
  template <class T> T kept(std::string_view name = T::kept_as) const { return kept_.template get<T>(name); }

  /// The outputs for each row of x: (samples, outputs).
  template <int Rank> Tensor<Scalar, 2, Device> predict(TensorView<const Element, Rank, Device> x) {
    return train::predict_rows<Model, Rank>(executor_.model(), x, executor_.capacity(), forward());
  }
  template <int Rank> Tensor<Scalar, 2, Device> predict(const Tensor<Element, Rank, Device>& x) {
    return predict<Rank>(x.view());
  }
  /// The same for each sample of a data set.
  Tensor<Scalar, 2, Device> predict(const data::DatasetView& data) {
    train::check_samples<Model>(data, "predicted");
    return train::predict_samples(executor_.model(), data, executor_.capacity(), forward());
  }

  /// The same for each row of a table, as it comes: the file's TableEncoder encodes it, and outputs are in the units of the
  /// table. Throws ArgumentError where the file keeps none (Trainer::keep(encoder)), and as the encoder does.
  template <std::same_as<data::Table> Rows> Tensor<Scalar, 2> predict(const Rows& table) {
    const auto encoder = kept<data::TableEncoder>();
    const auto samples = encoder.encode(table);
    Tensor<Scalar, 2> outputs = predict(data::DatasetView(samples)).template to<Cpu>();
    const auto width = static_cast<std::size_t>(outputs.extent(1));
    for (long i = 0; i < outputs.extent(0); ++i) encoder.restore(std::span(outputs.data() + i * outputs.extent(1), width));
    return outputs;
  }

  /// Bytes that it and the model hold.
  MemoryPlan memory_plan() const { return executor_.memory_plan(); }

 private:
  using Executor = skein::Executor<Model, nn::Mse>;  // without targets nothing is compared
  auto forward() {
    return [this](const auto& batch, Scalar* to) {
      (void)executor_.evaluate(batch);
      [[maybe_unused]] const auto here = executor_.memory().enter();
      constexpr long width = Model::output_extents.count();
      ops::copy_rows<Device>(to, width, executor_.outputs(), Executor::output_pitch, batch.count, width);
    };
  }

  Executor executor_;
  train::KeptObjects kept_;
};

}  // namespace skein::inline SKEIN_ABI
