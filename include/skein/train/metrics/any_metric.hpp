// SPDX-License-Identifier: Apache-2.0
// Any metric behind one type, so that the options of a trainer can hold a list of them: {.metrics = {TopK{5}, std::ref(matrix)}}.
// One indirect call a batch.
#pragma once
#include <concepts>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../metric.hpp"

namespace skein::inline SKEIN_ABI::train {

/// It can be fed with outputs of that scalar, and such labels or targets.
template <class M, class Scalar, class Truth> concept TakesOutputs = requires(M& metric, Rows<Scalar> outputs, Truth truth) {
  metric.add(outputs, truth);
};

/// It says that its value is not to be written down with the scores.
template <class M> concept WithoutColumn = requires { requires !M::has_column; };

/// Fed with rows of targets, M takes outputs above a threshold for a yes: threshold().
template <class M> concept HasThreshold = requires(const M& metric) {
  { metric.threshold() } -> std::convertible_to<double>;
};

/// Wants to know whether the outputs are probabilities: set_probabilities(whether the network ends with Softmax or Sigmoid).
template <class M> concept HearsOfProbabilities = requires(M& metric) { metric.set_probabilities(true); };

/// Knows of its own columns whether they are probabilities, where it is fed with some of the outputs: of_probabilities().
template <class M> concept KnowsProbabilities = requires(const M& metric) {
  { metric.of_probabilities() } -> std::same_as<bool>;
};

/// Refuses rows with a number of outputs that it does not measure: check_outputs(outputs) throws ArgumentError.
template <class M> concept ChecksOutputs = requires(const M& metric) { metric.check_outputs(1); };

namespace detail {
[[noreturn]] inline void refuse_truth(std::string_view name, const char* scalar, const char* given, bool labels, bool targets) {
  const std::string metric = "metric '" + std::string(name) + "' ";
  if (labels != targets)
    throw ArgumentError(metric + (labels
                                      ? "is for class labels, and these samples have target values: take R2, MeanAbsoluteError "
                                        "or an OwnMetric; of one output of a Graph metric_on"
                                      : "is for target values, and these samples have class labels: take Accuracy, TopK, "
                                        "Precision or an OwnMetric"));
  throw ArgumentError(metric + "cannot be fed with " + scalar + " outputs and " + given);
}
}  // namespace detail

/// Owns a copy of the metric, or refers to the user's through std::ref, which a metric with a name wants: the trainer fills it.
/// Copies have a state of their own (those of a reference share it).
class AnyMetric {
  template <class T> struct Unwrapped { using type = T; };
  template <class T> struct Unwrapped<std::reference_wrapper<T>> { using type = T; };

 public:
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, AnyMetric>) AnyMetric(T&& metric) {
    using Inner = typename Unwrapped<std::remove_cvref_t<T>>::type;
    assert_metric<Inner>();
    constexpr bool named = std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>;
    constexpr bool is_copied = std::same_as<Inner, std::remove_cvref_t<T>>;
    static_assert(!is_copied || !Metric<Inner> || !(named || WithoutColumn<Inner>),
                  "the trainer would fill a copy of this metric: hand it over by reference, .metrics = {std::ref(matrix)}, and "
                  "read it afterwards");
    if constexpr (Metric<Inner>) held_ = std::make_unique<Model<std::remove_cvref_t<T>>>(std::forward<T>(metric));
  }
  AnyMetric(const AnyMetric& other) : held_(other.held_->copy()) {}
  AnyMetric(AnyMetric&&) noexcept = default;
  AnyMetric& operator=(AnyMetric other) noexcept {
    held_.swap(other.held_);
    return *this;
  }

  std::string_view name() const { return held_->name(); }
  bool takes_labels() const { return held_->takes_labels(); }
  bool takes_targets() const { return held_->takes_targets(); }
  /// Throws ArgumentError where the metric does not measure rows of so many outputs.
  void check_outputs(int outputs) const { held_->check_outputs(outputs); }
  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) { held_->add(outputs, labels); }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets) { held_->add(outputs, targets); }
  /// Begins anew, for rows of so many outputs and values to compare with (0: a label).
  void begin(int outputs, int values, bool probabilities = false) { held_->begin(outputs, values, probabilities); }
  /// What ranks add up before value() is asked.
  std::span<double> sums() { return held_->sums(); }
  /// What it keeps of each row, which ranks put together; null where it has sums.
  std::vector<double>* samples() { return held_->samples(); }
  double value() const { return held_->value(); }
  /// Its threshold; NaN where it has none.
  double threshold() const { return held_->threshold(); }
  /// Whether it is fed with probabilities; `network`: that ends with Softmax or Sigmoid.
  bool of_probabilities(bool network) const { return held_->of_probabilities(network); }
  /// The object that was given by std::ref; null where a copy is held.
  const void* referred() const { return held_->referred(); }
  /// Whether its value is written down with the scores; not where the metric has `static constexpr bool has_column = false`.
  bool has_column() const { return held_->has_column(); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual std::string_view name() const = 0;
    virtual bool takes_labels() const = 0;
    virtual bool takes_targets() const = 0;
    virtual void check_outputs(int outputs) const = 0;
    virtual void add(Rows<float>, Labels) = 0;
    virtual void add(Rows<double>, Labels) = 0;
    virtual void add(Rows<float>, Rows<float>) = 0;
    virtual void add(Rows<double>, Rows<double>) = 0;
    virtual void begin(int outputs, int values, bool probabilities) = 0;
    virtual std::span<double> sums() = 0;
    virtual std::vector<double>* samples() = 0;
    virtual double value() const = 0;
    virtual double threshold() const = 0;
    virtual bool of_probabilities(bool network) const = 0;
    virtual const void* referred() const = 0;
    virtual bool has_column() const = 0;
  };
  template <class T> struct Model final : Base {
    using Inner = typename Unwrapped<T>::type;
    explicit Model(T given) : metric(std::move(given)) {}
    Inner& inner() { return metric; }
    const Inner& inner() const { return metric; }
    std::unique_ptr<Base> copy() const override { return std::make_unique<Model>(*this); }
    std::string_view name() const override { return inner().name(); }
    bool takes_labels() const override { return LabelMetric<Inner>; }
    bool takes_targets() const override { return TargetMetric<Inner>; }
    void check_outputs([[maybe_unused]] int outputs) const override {
      if constexpr (ChecksOutputs<Inner>) inner().check_outputs(outputs);
    }
    void add(Rows<float> outputs, Labels labels) override { feed(outputs, labels, "labels"); }
    void add(Rows<double> outputs, Labels labels) override { feed(outputs, labels, "labels"); }
    void add(Rows<float> outputs, Rows<float> targets) override { feed(outputs, targets, "target rows"); }
    void add(Rows<double> outputs, Rows<double> targets) override { feed(outputs, targets, "target rows"); }
    void begin([[maybe_unused]] int outputs, [[maybe_unused]] int values, [[maybe_unused]] bool probabilities) override {
      if constexpr (HearsOfProbabilities<Inner>) inner().set_probabilities(probabilities);
      if constexpr (IsBegun<Inner>) inner().begin(outputs, values);
      else clear(inner());
    }
    std::span<double> sums() override {
      if constexpr (KeepsSamples<Inner>) return {};
      else return inner().sums();
    }
    std::vector<double>* samples() override {
      if constexpr (KeepsSamples<Inner>) return &inner().samples();
      else return nullptr;
    }
    double value() const override { return inner().value(); }
    double threshold() const override {
      if constexpr (HasThreshold<Inner>) return inner().threshold();
      else return std::numeric_limits<double>::quiet_NaN();
    }
    bool of_probabilities(bool network) const override {
      if constexpr (KnowsProbabilities<Inner>) return inner().of_probabilities();
      else return network;
    }
    const void* referred() const override {
      if constexpr (std::same_as<T, Inner>) return nullptr;
      else return &inner();
    }
    bool has_column() const override { return !WithoutColumn<Inner>; }

    template <class Scalar, class Truth> void feed(Rows<Scalar> outputs, Truth truth, const char* kind) {
      if constexpr (TakesOutputs<Inner, Scalar, Truth>) {
        inner().add(outputs, truth);
      } else {
        detail::refuse_truth(name(), std::is_same_v<Scalar, float> ? "float" : "double", kind,
                             TakesOutputs<Inner, Scalar, Labels>, TakesOutputs<Inner, Scalar, Rows<Scalar>>);
      }
    }
    T metric;
  };
  std::unique_ptr<Base> held_;
};

}  // namespace skein::inline SKEIN_ABI::train
