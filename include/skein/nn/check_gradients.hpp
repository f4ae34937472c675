// SPDX-License-Identifier: Apache-2.0
// check_gradients<Layer, Input>(): is backward the derivative of forward? Every parameter and input is moved a little to both
// sides, in double, and what the output does is compared with what backward says. For a layer of one's own or for a whole
// network:
//
//     if (const auto check = sk::check_gradients<Scale, sk::Shape<7>>(); !check) std::puts(check.text().c_str());
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../device/memory.hpp"
#include "check.hpp"
#include "initializers.hpp"
#include "program.hpp"

namespace skein::inline SKEIN_ABI {

/// How a check is made.
struct GradientCheckOptions {
  long batch = 3;           ///< samples
  double step = 1e-5;       ///< how far a value is moved to either side
  double tolerance = 1e-6;  ///< of the difference, beside the larger of 1 and the gradient
  long most = 200;          ///< values of an array that are tried, evenly spread
  Seed seed{1};             ///< of parameters, inputs and the gradient of the output
};

/// An array of values, a parameter or the input, whose gradient is not what finite differences say; its worst value.
struct GradientDisagreement {
  std::string where;      ///< parameter "scale"[3], or input 2 of sample 0
  double gradient = 0;    ///< as backward has it
  double difference = 0;  ///< (f(x + step) - f(x - step)) / (2 step)
  long wrong = 0, tried = 0;
  bool untouched = false;  ///< backward says 0 in all of them
};

/// What a check found.
struct GradientCheck {
  std::vector<GradientDisagreement> disagreements;
  std::string unwritten;  ///< what a layer does not write, and which; empty: all write what they must
  double worst = 0;       ///< the largest error of all, beside the larger of 1 and the gradient
  long tried = 0;         ///< values that were moved

  explicit operator bool() const { return disagreements.empty() && unwritten.empty(); }
  /// A line for each parameter or input that disagrees; or that all agree. What is not written is all there is to say.
  std::string text() const {
    if (!unwritten.empty()) return unwritten + "\n";
    if (disagreements.empty())
      return skein::text("gradients agree with finite differences in {} values; largest error {}\n", tried, number(worst));
    std::string s;
    for (const GradientDisagreement& d : disagreements)
      s += skein::text("{}: backward says {}, finite differences {}, off by {} ({} of the {} values tried disagree){}", d.where,
                       number(d.gradient), number(d.difference), number(std::abs(d.gradient - d.difference)), d.wrong, d.tried,
                       (d.untouched ? ": backward says 0 in all of them, as if it added nothing to this gradient\n" : "\n"));
    return s;
  }

 private:
  static std::string number(double v) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", v);
    return text;
  }
};

namespace nn::detail {

/// A layer or network with all memory that a pass takes, in double, run by one worker.
template <class L, class In> class GradientRun {
  static_assert(sizeof(skein::check::FirstFault<L, In>) > 0);
  static constexpr MemoryRequirements sizes = with_room(analyze<L>(In::extents));
  static constexpr const auto& program = nn::program<L, In>;
  static constexpr long in = sample_pitch(In::extents), out = sample_pitch(sizes.output);
  using Values = Arena<double>;
  static std::size_t count(long n) { return static_cast<std::size_t>(n); }

 public:
  explicit GradientRun(const GradientCheckOptions& o)
      : options_(o), parameters_(count(sizes.stored)), gradients_(count(sizes.stored)), buffers_(count(sizes.buffers)),
        start_(count(sizes.buffers)), packed_(count(sizes.packed_weights)), statistics_(count(sizes.batch_statistics)),
        kept_(count((sizes.kept_activations + sizes.again.activations) * o.batch)),
        scratch_(count((sizes.scratch + sizes.whole_gradients) * o.batch)),
        saved_(count((sizes.saved_for_backward + sizes.backward_scratch + sizes.again.saved) * o.batch)),
        workspace_(count(sizes.workspace)), x_(count(whole_line(in) * o.batch)), y_(count(whole_line(out) * o.batch)),
        dy_(count(whole_line(out) * o.batch)), dx_(count(whole_line(in) * o.batch)), exchange_(4096),
        saved_bytes_(count((sizes.saved_bytes + sizes.again.bytes) * o.batch)),
        tokens_(count(is_tokens<In> ? In::count * o.batch : 0)) {
    fill(program.parameters(), parameters_.data());
    fill(program.buffers(), start_.data());
    for (std::size_t i = 0; i < parameters_.size(); ++i)  // off the places where an initial value hides an error: 0 and 1
      if (parameters_.data()[i] == 0 || parameters_.data()[i] == 1) parameters_.data()[i] += 0.3 * noise(1, i);
    clear_gaps();
    for (std::size_t i = 0; i < x_.size(); ++i) x_.data()[i] = noise(2, i);
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      tokens_.data()[i] = static_cast<std::int32_t>((noise(2, i) + 1) / 2 * sizes.tokens);
    for (std::size_t i = 0; i < dy_.size(); ++i) dy_.data()[i] = noise(3, i);
    make_run();
  }

  /// Where a layer does not write what it must there are no gradients to compare.
  GradientCheck check() try {
    objective();
    const double* dx = Node<L, In>::backward(run_, {}, {x_.data(), y_at_, dy_.data(), dx_.data()});
    const std::vector<double> input(dx, dx + options_.batch * in);  // a network that only renames hands dy on
    const std::vector<double> gradients(gradients_.data(), gradients_.data() + gradients_.size());
    GradientCheck result;
    for (const plan::Entry& e : program.parameters()) {
      const long last = e.extents.last(), pitch = row_pitch(last);
      const std::string name = "parameter \"" + std::string(std::string_view(program.name(e))) + "\"[";
      compare(result, e.extents.count(), [&](long i) {
        const std::size_t at = count(e.offset + i / last * pitch + i % last);
        return Place{parameters_.data() + at, gradients[at], skein::text("{}{}]", name, i)};
      });
    }
    if (sizes.tokens == 0)
      compare(result, options_.batch * In::count, [&](long i) {
        const long sample = i / In::count, at = sample * in + i % In::count;
        return Place{x_.data() + at, input[count(at)], skein::text("input {} of sample {}", i % In::count, sample)};
      });
    return result;
  } catch (const Unwritten& e) {
    GradientCheck result;
    result.unwritten = e.what();
    return result;
  }

 private:
  struct Place {
    double* value;
    double gradient;
    std::string name;
  };

  double noise(std::uint64_t stream, std::size_t i) const {
    return 2 * static_cast<double>(random_uniform(options_.seed.value, stream, i)) - 1;
  }
  template <class Entries> void fill(Entries entries, double* to) const {
    std::uint64_t stream = 0;
    for (const plan::Entry& e : entries)
      initialize(to + e.offset, e.extents, static_cast<Init>(e.init), e.fan_in, e.fan_out, options_.seed.value, stream++);
  }
  void clear_gaps() {
    for (const plan::Entry& e : program.parameters())
      for (long i = 0; i < e.stored; ++i)
        if (i % row_pitch(e.extents.last()) >= e.extents.last()) parameters_.data()[e.offset + i] = 0;
  }
  void make_run() {
    run_.tokens = tokens_.data();
    run_.parameters = parameters_.data();
    run_.gradients = run_.split_gradients = gradients_.data();
    run_.buffers = buffers_.data();
    run_.packed_weights = packed_.data();
    run_.batch_statistics = statistics_.data();
    run_.kept_activations = kept_.data();
    run_.saved_for_backward = saved_.data();
    run_.backward_scratch = saved_.data() + sizes.saved_for_backward * options_.batch;
    run_.saved_bytes = saved_bytes_.data();
    run_.again = {kept_.data() + sizes.kept_activations * options_.batch,
                  run_.backward_scratch + sizes.backward_scratch * options_.batch,
                  saved_bytes_.data() + sizes.saved_bytes * options_.batch, false};
    run_.scratch = scratch_.data();
    run_.scratch_width = sizes.scratch;
    run_.input_gradient = true;
    run_.whole_gradients = scratch_.data() + sizes.scratch * options_.batch;
    run_.workspace = workspace_.data();
    run_.capacity = run_.batch = run_.context.total = options_.batch;
    run_.context.exchange = exchange_.data();
    run_.context.exchange_size = static_cast<long>(exchange_.size());
    Node<L, In>::prepare(run_, {});
  }
  /// The sum of dy y of a pass, whose gradient backward makes.
  double objective() {
    std::copy(start_.data(), start_.data() + start_.size(), buffers_.data());
    Node<L, In>::pack_weights(run_, {});
    y_at_ = Node<L, In>::forward(run_, {}, x_.data(), y_.data());
    double sum = 0;
    for (long s = 0; s < options_.batch; ++s)
      for (long i = 0; i < sizes.output.count(); ++i) sum += dy_.data()[s * out + i] * y_at_[s * out + i];
    return sum;
  }
  template <class At> void compare(GradientCheck& result, long n, At&& at) {
    GradientDisagreement found;
    double most = 0;
    bool touched = false;
    for (long k = 0, tried = std::min(n, options_.most); k < tried; ++k) {
      const Place p = at(k * n / tried);
      const double middle = *p.value;
      *p.value = middle + options_.step;
      const double up = objective();
      *p.value = middle - options_.step;
      const double down = objective();
      *p.value = middle;
      const double difference = (up - down) / (2 * options_.step);
      double error = std::abs(p.gradient - difference) / std::max(1.0, std::abs(difference));
      if (!(error >= 0)) error = INFINITY;  // not a number
      ++found.tried;
      ++result.tried;
      if (error > options_.tolerance) ++found.wrong;
      touched = touched || p.gradient != 0;
      if (error > most) {
        most = error;
        found.where = p.name, found.gradient = p.gradient, found.difference = difference;
      }
    }
    result.worst = std::max(result.worst, most);
    found.untouched = !touched;
    if (found.wrong > 0) result.disagreements.push_back(found);
  }

  GradientCheckOptions options_;
  Values parameters_, gradients_, buffers_, start_, packed_, statistics_, kept_, scratch_, saved_, workspace_, x_, y_, dy_, dx_,
      exchange_;
  Arena<std::byte> saved_bytes_;
  Arena<std::int32_t> tokens_;
  struct WatchedRun : Run<double, Cpu> {
    static constexpr bool checks_writes = true;
  };
  WatchedRun run_;
  const double* y_at_ = nullptr;
};

}  // namespace nn::detail

/// Compares the gradients of a layer or network at an input with finite differences of its forward: every parameter and input, in
/// double on the Cpu, in the phase of training. The result is true where all agree, and says which do not, and by how much.
/// Kinks (of a ReLU, of a maximum) that a value steps over disagree rightly: take another seed. What is random from call to call
/// is not: a Dropout's mask is that of one step. Throws ArgumentError for options with which no value would be tried.
template <class L, class In> GradientCheck check_gradients(const GradientCheckOptions& options = {}) {
  if (options.batch < 1 || options.most < 1 || !(options.step > 0))
    throw ArgumentError("check_gradients: .batch and .most are at least 1, and .step is positive: else no value is tried");
  return nn::detail::GradientRun<L, In>(options).check();
}

}  // namespace skein::inline SKEIN_ABI
