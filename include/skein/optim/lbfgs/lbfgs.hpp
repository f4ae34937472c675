// SPDX-License-Identifier: Apache-2.0
// L-BFGS: quasi-Newton steps on the whole data set, whose loss it evaluates several times a step. Liu and Nocedal, "On the
// limited memory BFGS method for large scale optimization", 1989; with the formulas, the order of evaluations and the defaults of
// torch.optim.LBFGS. It is no optim::Optimizer, whose update is one pass over a gradient: a loop by hand calls it with a closure.
#pragma once
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../optimizer.hpp"
#include "curvature_pairs.hpp"
#include "line_search.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// How L-BFGS finds the length of a step.
enum class LineSearch {
  none,         ///< it is .lr (in the first iteration at most .lr / |gradient|_1)
  strong_wolfe  ///< see strong_wolfe(): begins with that, and costs a few evaluations
};

/// Hyper-parameters, with PyTorch's defaults. A step is up to `max_iterations` iterations.
struct Lbfgs {
  double lr = 1;
  int max_iterations = 20;
  /// The most calls of the closure in a step. A search for a length that they end makes one more, as torch's does. 0: 5/4 of
  /// max_iterations, so that .max_iterations = 1 leaves a search one trial.
  int max_evaluations = 0;
  double tolerance_gradient = 1e-7, tolerance_change = 1e-9;
  int history = 100;  ///< pairs of arrays of the parameters' size that are kept
  LineSearch line_search = LineSearch::none;
  static constexpr bool takes_closure = true;

  void check() const {
    detail::demand(lr > 0 && std::isfinite(lr), "Lbfgs", "lr", lr, "the length of a step is above 0; 1 is usual");
    detail::demand(max_iterations >= 1, "Lbfgs", "max_iterations", max_iterations, "a step has at least one iteration");
    detail::demand(max_evaluations >= 0, "Lbfgs", "max_evaluations", max_evaluations,
                   "evaluations of the closure are counted from 1; 0: 5/4 of the iterations");
    detail::demand(history >= 1, "Lbfgs", "history", history, "at least one pair is kept, usually 10 to 100");
    skein::detail::demand_value("Lbfgs", ".line_search", line_search, LineSearch::strong_wolfe, "none or strong_wolfe");
    detail::demand(tolerance_gradient >= 0, "Lbfgs", "tolerance_gradient", tolerance_gradient, "a tolerance is not negative");
    detail::demand(tolerance_change >= 0, "Lbfgs", "tolerance_change", tolerance_change, "a tolerance is not negative");
    detail::demand_finite("Lbfgs", "tolerance_gradient", tolerance_gradient);
    detail::demand_finite("Lbfgs", "tolerance_change", tolerance_change);
  }
};

/// Lbfgs with its state, for one model: `optim::BoundLbfgs lbfgs{optim::Lbfgs{.history = 10}, model};`. On the host.
template <class Scalar> class BoundLbfgs {
 public:
  template <class Model> BoundLbfgs(const Lbfgs& options, const Model& model) : options_(options), weights_(&model.weights()) {
    static_assert(std::same_as<typename Model::device, Cpu>, "L-BFGS is for models of the host: Model<Network, Input>");
    options_.check();
    if (options_.max_evaluations == 0)
      options_.max_evaluations = static_cast<int>(std::min(std::int64_t{options_.max_iterations} * 5 / 4, std::int64_t{INT_MAX}));
  }

  /// One step: iterations until one of the limits is reached. `double closure()` writes model.gradients() for the weights as they
  /// are and returns the loss, both of the whole data set: executor.forward_backward(batch).mean(), and on several ranks the sums
  /// over them, by which all take the same steps. Returns the loss before the step. Throws ArgumentError for another model, and
  /// where the loss or its gradient before the step is not finite: the weights are then the last ones where the loss was. What
  /// closure() throws leaves the weights of the last iteration.
  template <class Model, class Closure> double step(Model& model, Closure&& closure) {
    if (weights_ != &model.weights())
      throw ArgumentError(
          "Lbfgs: step was given another model than the one that it was made with: its state is of that one's weights");
    Line<Model, Closure> line(*this, model, closure);
    const double before = line.loss();
    double loss = before;
    int evaluations = 1;
    if (detail::largest(gradient()) <= options_.tolerance_gradient) return before;
    for (int n = 1; n <= options_.max_iterations; ++n) {
      find_direction();
      previous_ = gradient();
      const double slope = detail::dot(gradient(), direction_);
      if (slope > -options_.tolerance_change) break;
      line.begin();
      const bool last = n == options_.max_iterations && options_.line_search == LineSearch::none;
      const double previous = loss;
      evaluations += move(line, slope, last, options_.max_evaluations - evaluations, loss);
      ++iterations_;  // one that throws was none: the next one begins as it did
      if (n == options_.max_iterations || evaluations >= options_.max_evaluations) break;
      const double steepest = detail::largest(gradient());
      if (steepest <= options_.tolerance_gradient || !std::isfinite(steepest)) break;  // the next step says that it is not finite
      if (detail::largest(direction_) * std::abs(length_) <= options_.tolerance_change) break;
      if (std::abs(loss - previous) < options_.tolerance_change) break;
    }
    return before;
  }

  const Lbfgs& options() const { return options_; }
  /// The numbers of iterations, and of calls of the closure, in all steps.
  std::int64_t iterations() const { return iterations_; }
  std::int64_t evaluations() const { return evaluations_; }
  /// Pairs that are kept: at most .history.
  std::size_t pairs() const { return pairs_.size(); }

 private:
  using Values = detail::Values<Scalar>;

  /// The model's loss from where it was when begin() was called, along the direction.
  template <class Model, class Closure> class Line final : public LineFunction {
   public:
    Line(BoundLbfgs& own, Model& model, Closure& closure) : own_(own), model_(model), closure_(closure) {}
    /// The loss where the weights are; the gradient goes into array 0. Throws ArgumentError where one of them is not finite.
    double loss() {
      const bool moved_unseen = own_.unseen_ == model_.version();
      const double loss = evaluate(0);
      if (!std::isfinite(loss) && moved_unseen) --own_.iterations_, own_.refuse_loss(*this, loss);
      if (!std::isfinite(loss))
        throw ArgumentError("Lbfgs: the loss is not finite before the step: look for NaN in the data and the weights");
      own_.current_ = 0;
      if (!std::isfinite(detail::largest(own_.gradient())))
        throw ArgumentError(
            "Lbfgs: the loss is finite before the step, and its gradient is not, so there is no direction: look for a layer or a "
            "loss that has no derivative at these weights, as the root of 0 has none");
      return loss;
    }
    void begin() {
      if (own_.current_ != 0) std::swap(own_.gradients_[0], own_.gradients_[own_.current_]);
      own_.current_ = 0;
      const auto w = model_.parameters();
      own_.start_.assign(w.data, w.data + w.size);
    }
    void go(double length) {
      const auto lease = model_.modify();
      Scalar* const to = lease.data();
      if (length == 0) std::copy(own_.start_.begin(), own_.start_.end(), to);  // a direction may be infinite
      else
        for (std::size_t i = 0; i < own_.start_.size(); ++i)
          to[i] = own_.start_[i] + static_cast<Scalar>(length) * own_.direction_[i];
    }
    std::uint64_t version() const { return model_.version(); }
    LinePoint at(double length, int array) override {
      go(length);
      double loss = 0;
      try {
        loss = evaluate(array);
      } catch (...) {
        go(0);
        throw;
      }
      return {length, loss, detail::dot(own_.gradients_[static_cast<std::size_t>(array)], own_.direction_), array};
    }

   private:
    double evaluate(int array) {
      const double loss = static_cast<double>(closure_());
      const auto g = std::as_const(model_).gradients();
      if (g.size == 0)
        throw ArgumentError("Lbfgs: the closure left no gradients in the model: call executor.forward_backward(batch) in it");
      own_.gradients_[static_cast<std::size_t>(array)].assign(g.data, g.data + g.size);
      ++own_.evaluations_;
      return loss;
    }

    BoundLbfgs& own_;
    Model& model_;
    Closure& closure_;
  };

  const Values& gradient() const { return gradients_[current_]; }

  /// Makes the direction of the next iteration, and the length to begin with.
  void find_direction() {
    if (iterations_ == 0) {
      direction_ = gradient();
      detail::multiply(direction_, -1);
      double sum = 0;
      for (const Scalar g : gradient()) sum += std::abs(static_cast<double>(g));
      length_ = std::min(1.0, 1 / sum) * options_.lr;
      return;
    }
    Values y = gradient(), s = direction_;
    detail::add(y, -1, previous_);
    detail::multiply(s, length_);
    pairs_.note(std::move(y), std::move(s), options_.history);
    pairs_.direction(gradient(), direction_);
    length_ = options_.lr;
  }
  /// The weights go along the direction; `loss` and the gradient follow, unless it is the last move of a step without a search.
  /// Returns evaluations.
  template <class L> int move(L& line, double slope, bool last, int evaluations_left, double& loss) {
    const std::int64_t before = evaluations_;
    if (options_.line_search == LineSearch::strong_wolfe) {
      const LinePoint start{0, loss, slope, 0};
      const WolfeOptions wolfe{.tolerance_change = options_.tolerance_change,
                               .largest = detail::largest(direction_),
                               .most = std::min(25, evaluations_left)};
      const LinePoint found = strong_wolfe(line, start, length_, wolfe);
      line.go(found.length);
      length_ = found.length;
      loss = found.loss;
      current_ = static_cast<std::size_t>(found.gradient);
    } else if (last) {
      line.go(length_);
      unseen_ = line.version();
    } else {
      const LinePoint now = line.at(length_, 1);
      if (!std::isfinite(now.loss)) refuse_loss(line, now.loss);
      loss = now.loss;
      current_ = 1;
    }
    return static_cast<int>(evaluations_ - before);
  }
  template <class L> [[noreturn]] void refuse_loss(L& line, double loss) {
    line.go(0);
    throw ArgumentError(
        text("Lbfgs: a step of length {} made the loss {}: take .line_search = LineSearch::strong_wolfe, or a smaller .lr. The "
             "weights are those before the step",
             length_, std::isnan(loss) ? std::abs(loss) : loss));
  }

  Lbfgs options_;
  const void* weights_;
  detail::CurvaturePairs<Scalar> pairs_;
  Values direction_, start_, previous_;  ///< start_: the weights where a line begins; previous_: the gradient there
  Values gradients_[4];                  ///< of points on the line; the latest one that was taken is gradients_[current_]
  std::size_t current_ = 0;
  double length_ = 0;
  std::uint64_t unseen_ = 0;  ///< the version of the weights where the last move of a step without a search has ended
  std::int64_t iterations_ = 0, evaluations_ = 0;
};
template <class Model> BoundLbfgs(const Lbfgs&, const Model&) -> BoundLbfgs<typename Model::Scalar>;

}  // namespace skein::inline SKEIN_ABI::optim
