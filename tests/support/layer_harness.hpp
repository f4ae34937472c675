// SPDX-License-Identifier: Apache-2.0
// Runs one layer on frames, as an executor would: memory of every kind that LayerInfo asks for, between canaries; forward and
// backward by one or more workers on slices of the batch; finite differences. Gaps behind flat samples hold NaN, so that a
// layer that reads them is seen; gaps of parameters' rows are zero, and their gradients must stay so.
//
//     support::LayerHarness<nn::Linear<10>, sk::Shape<84>, double> h(5);          // batch 5, one worker
//     h.forward();  h.backward();  h.y_at(3, 9);  h.check_gradients();
//
// With sk::Cuda as the fourth argument (in a .cu file that includes skein/cuda.hpp) the arrays of the test stay on the host: each
// run copies all of them to the device, canaries included, and back. There is one worker then, as in a training on a device.
#pragma once
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <skein/core/random.hpp>
#include <skein/core/workers.hpp>
#include <skein/device/copy.hpp>
#include <skein/nn/layer.hpp>

#include "larger.hpp"

namespace support {

namespace sk = skein;

/// An aligned array between canaries: intact() is false once something wrote beside it.
template <class T> class Guarded {
 public:
  explicit Guarded(long n = 0) : n_(n), memory_(static_cast<std::size_t>(n + 2 * margin)) {
    for (long i = 0; i < margin; ++i) memory_.data()[i] = memory_.data()[margin + n + i] = canary(i);
  }
  T* data() { return memory_.data() + margin; }
  const T* data() const { return memory_.data() + margin; }
  long size() const { return n_; }
  T& operator[](long i) { return data()[i]; }
  const T& operator[](long i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + n_; }
  void fill(T value) { std::fill(begin(), end(), value); }
  /// With the canaries.
  T* whole() { return memory_.data(); }
  std::size_t whole_size() const { return memory_.size(); }
  bool intact() const {
    for (long i = 0; i < margin; ++i)
      if (memory_.data()[i] != canary(i) || memory_.data()[margin + n_ + i] != canary(i)) return false;
    return true;
  }

  static constexpr long margin = 64;  // whole cache lines: what is between is aligned to 64 bytes

 private:
  static T canary(long i) { return static_cast<T>(17 + i % 50); }
  long n_;
  sk::Arena<T> memory_;
};

/// Deterministic values in (-1, 1): the same on every machine, and by the same formula in Python where a fixture needs them.
inline double wave(long i, double step, double phase = 0) {
  const volatile double turn = step * static_cast<double>(i + 1);  // rounded, as in Python: clang++ contracts
  return std::sin(turn + phase);
}

/// Where a run finds the arrays of a test: on the host, the arrays themselves.
template <class Device> class Elsewhere {
 public:
  template <class T> T* of(Guarded<T>& a) { return a.data(); }
  void back() {}
};
/// On a device with memory of its own: copies, made at the first use in a run and brought back at its end.
template <class Device>
requires(!std::same_as<Device, sk::Cpu>) class Elsewhere<Device> {
 public:
  template <class T> T* of(Guarded<T>& a) {
    Twin& t = twins_[a.whole()];
    if (t.bytes == 0) {
      t.bytes = a.whole_size() * sizeof(T);
      t.there = sk::Arena<std::byte, Device>(t.bytes);
      sk::Copy<Device, sk::Cpu>::run(t.there.data(), a.whole(), t.bytes);
    }
    return reinterpret_cast<T*>(t.there.data()) + Guarded<T>::margin;
  }
  void back() {
    for (auto& [here, t] : twins_) sk::Copy<sk::Cpu, Device>::run(here, t.there.data(), t.bytes);
    twins_.clear();
  }

 private:
  struct Twin {
    sk::Arena<std::byte, Device> there;
    std::size_t bytes = 0;
  };
  std::map<void*, Twin> twins_;
};

template <class L, class In, class Scalar_ = double, class Device_ = sk::Cpu> class LayerHarness {
 public:
  using Scalar = Scalar_;
  using Device = Device_;
  using FrameType = sk::nn::Frame<Scalar, Device>;
  using ContextType = sk::nn::Context<Scalar, Device>;
  static constexpr bool on_host = std::same_as<Device, sk::Cpu>;
  static constexpr sk::LayerInfo info = L::describe(In::extents);
  static constexpr sk::KernelNeeds needs = [] {
    if constexpr (sk::nn::HasNeeds<L>) return L::template needs<Device>(In::extents);
    else return sk::KernelNeeds{};
  }();
  static constexpr long in_count = In::count, in_pitch = sk::sample_pitch(In::extents);
  static constexpr long out_count = info.output.count(), out_pitch = sk::sample_pitch(info.output);

  /// `split`: Context::split_gradients(), for layers that declare splits_gradients; the sums over workers are made here.
  explicit LayerHarness(long samples, int workers = 1, bool split = false)
      : batch(samples), parameters(info.stored_parameters()), buffers(info.stored_buffers()),
        packed_weights(needs.packed_weights), x(samples * in_pitch), tokens(sk::is_tokens<In> ? samples * in_count : 0),
        y(samples * out_pitch), dy(samples * out_pitch), dx(samples * in_pitch),
        saved_for_backward(samples * info.saved_for_backward), batch_statistics(info.batch_statistics),
        saved_bytes(samples * info.saved_bytes), values_(sizeof(sk::ops::StepValues)),
        team_(std::make_unique<sk::Workers>(workers)), exchange_(static_cast<std::size_t>(workers) * exchange_size),
        split_(split && needs.splits_gradients && workers > 1) {
    if (!on_host) REQUIRE(workers == 1);
    for (int w = 0; w < workers; ++w) gradients_.emplace_back(info.stored_parameters());
    for (int w = 0; w < workers; ++w) workspace_.emplace_back(needs.workspace);
    initialize(11);
    set_x([](long b, long i) { return wave(b * 131 + i, 0.7, 0.3); });
    set_dy([](long b, long i) { return wave(b * 57 + i, 1.3, 0.1); });
  }

  // ---- memory: public, laid out as in an executor

  long batch;
  Guarded<Scalar> parameters, buffers, packed_weights, x;
  Guarded<std::int32_t> tokens;  ///< where In is Tokens<T>, in place of x
  Guarded<Scalar> y, dy, dx, saved_for_backward, batch_statistics;
  Guarded<std::byte> saved_bytes;
  ContextType context{};  ///< a template for the workers': set phase, key, ... here

  /// The gradient, summed over the workers, in the layout of the parameters.
  const Guarded<Scalar>& gradients() const { return gradients_[0]; }

  Scalar& x_at(long b, long i) { return x[b * in_pitch + i]; }
  Scalar& y_at(long b, long i) { return y[b * out_pitch + i]; }
  Scalar& dy_at(long b, long i) { return dy[b * out_pitch + i]; }
  Scalar& dx_at(long b, long i) { return dx[b * in_pitch + i]; }

  /// Where value i (logical, row-major) of parameter p is stored.
  static constexpr long parameter_index(int p, long i) {
    long at = 0;
    for (int q = 0; q < p; ++q) at += sk::stored_count(info.parameters[static_cast<std::size_t>(q)].extents);
    const long columns = info.parameters[static_cast<std::size_t>(p)].extents.last();
    return at + i / columns * sk::row_pitch(columns) + i % columns;
  }
  static constexpr long parameter_size(int p) { return info.parameters[static_cast<std::size_t>(p)].extents.count(); }
  Scalar& parameter_at(int p, long i) { return parameters[parameter_index(p, i)]; }
  Scalar gradient_at(int p, long i) const { return gradients_[0][parameter_index(p, i)]; }

  template <class F> void set_x(F f) { set(x, in_count, in_pitch, f); }
  template <class F> void set_tokens(F f) {
    for (long i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(f(i / in_count, i % in_count));
  }
  template <class F> void set_dy(F f) { set(dy, out_count, out_pitch, f); }
  template <class F> void set_parameter(int p, F f) {
    for (long i = 0; i < parameter_size(p); ++i) parameter_at(p, i) = static_cast<Scalar>(f(i));
  }
  /// Parameters and buffers by their initializers.
  void initialize(std::uint64_t seed) {
    long at = 0, stream = 0;
    for (const auto& p : info.parameters) {
      if (p.name.empty()) continue;
      sk::nn::initialize(parameters.data() + at, p.extents, p.init, p.fan_in, p.fan_out, seed,
                         static_cast<std::uint64_t>(stream++));
      at += sk::stored_count(p.extents);
    }
    at = 0;
    for (const auto& b : info.buffers) {
      if (b.name.empty()) continue;
      sk::nn::initialize(buffers.data() + at, b.extents, b.init, 1, 1, seed, static_cast<std::uint64_t>(stream++));
      at += sk::stored_count(b.extents);
    }
  }

  // ---- runs

  /// pack_weights(), then forward, by all workers. Outputs are NaN before.
  void forward() {
    y.fill(nan());
    saved_for_backward.fill(nan());
    packed_weights.fill(nan());
    run([&](sk::Worker& w) {
      ContextType c;
      FrameType f = frame(w, c);
      if constexpr (sk::nn::HasPrepare<L>) L::template prepare<In>(f);
      if constexpr (sk::nn::HasPackWeights<L>) L::template pack_weights<In>(f);
      w.barrier();
      if constexpr (!info.aliases_input) L::template forward<In>(f);
    });
    if constexpr (info.aliases_input) std::copy_n(x.data(), batch * in_pitch, y.data());
  }

  /// After forward. The gradients start at zero unless `accumulate`; an overwriting layer gets garbage instead.
  void backward(bool wants_dx = true, bool accumulate = false) {
    dx.fill(nan());
    const bool stores = info.overwrites_gradients && !accumulate;
    for (std::size_t w = 0; w < gradients_.size(); ++w) {
      if (accumulate && w == 0) continue;  // worker 0 holds the sum so far
      gradients_[w].fill(Scalar(0));
      if (stores)
        for (int p = 0; p < info.entries(); ++p)
          for (long i = 0; i < parameter_size(p); ++i) gradients_[w][parameter_index(p, i)] = Scalar(1e30);
    }
    run([&](sk::Worker& w) {
      ContextType c;
      FrameType f = frame(w, c);
      c.accumulate = accumulate || !stores;
      f.x = info.saves_input ? f.x : nullptr;
      f.y = info.saves_output ? f.y : nullptr;
      f.dy = there_.of(dy) + c.first * out_pitch;
      f.dx = wants_dx ? there_.of(dx) + c.first * in_pitch : nullptr;
      if constexpr (!info.aliases_input) L::template backward<In>(f);
    });
    if constexpr (info.aliases_input)
      if (wants_dx) std::copy_n(dy.data(), batch * in_pitch, dx.data());
    if (!split_)
      for (std::size_t w = 1; w < gradients_.size(); ++w)
        for (long i = 0; i < gradients_[0].size(); ++i) gradients_[0][i] += gradients_[w][i];
  }

  /// sum(dy * y) of a fresh forward pass: the function whose gradient backward computes. Buffers stay as they are.
  double objective() {
    const std::vector<Scalar> kept(buffers.begin(), buffers.end());
    forward();
    std::copy(kept.begin(), kept.end(), buffers.begin());
    double sum = 0;
    for (long b = 0; b < batch; ++b)
      for (long i = 0; i < out_count; ++i) sum += static_cast<double>(dy_at(b, i)) * static_cast<double>(y_at(b, i));
    return sum;
  }

  // ---- checks

  bool intact() const {
    bool good = parameters.intact() && buffers.intact() && packed_weights.intact() && x.intact() && tokens.intact() &&
                y.intact() && dy.intact() && dx.intact() && saved_for_backward.intact() && batch_statistics.intact() &&
                saved_bytes.intact();
    for (const auto& g : gradients_) good = good && g.intact();
    for (const auto& g : workspace_) good = good && g.intact();
    return good;
  }
  /// The largest absolute value that a gradient has in a gap of its rows: must be 0.
  double worst_gap() const {
    double worst = 0;
    std::vector<bool> logical(static_cast<std::size_t>(gradients_[0].size()), false);
    for (int p = 0; p < info.entries(); ++p)
      for (long i = 0; i < parameter_size(p); ++i) logical[static_cast<std::size_t>(parameter_index(p, i))] = true;
    for (long i = 0; i < gradients_[0].size(); ++i)
      if (!logical[static_cast<std::size_t>(i)] && !(gradients_[0][i] == Scalar(0)))
        worst = larger(worst, static_cast<double>(gradients_[0][i]));
    return worst;
  }

  /// Backward against central differences, in double: every parameter and input, or `most` of them evenly spread.
  void check_gradients(double tolerance = 1e-6, long most = 150, double step = 1e-5) {
    static_assert(std::is_same_v<Scalar, double>, "finite differences want double");
    forward();
    backward();
    CHECK(worst_gap() == 0);
    CHECK(intact());
    const std::vector<double> g(gradients_[0].begin(), gradients_[0].end()), d(dx.begin(), dx.end());
    for (int p = 0; p < info.entries(); ++p) {
      const long n = parameter_size(p), stride = std::max(1L, n / most);
      for (long i = 0; i < n; i += stride) {
        INFO("parameter " << std::string(info.parameters[static_cast<std::size_t>(p)].name) << "[" << i << "]");
        compare(parameter_at(p, i), g[static_cast<std::size_t>(parameter_index(p, i))], tolerance, step);
      }
    }
    const long n = batch * in_count, stride = std::max(1L, n / most);
    for (long i = 0; i < n; i += stride) {
      const long b = i / in_count, e = i % in_count;
      INFO("input " << b << ", " << e);
      compare(x_at(b, e), d[static_cast<std::size_t>(b * in_pitch + e)], tolerance, step);
    }
  }

  static Scalar nan() { return std::numeric_limits<Scalar>::quiet_NaN(); }

 private:
  static constexpr long exchange_size = 4096;

  template <class F> static void set(Guarded<Scalar>& to, long count, long pitch, F f) {
    to.fill(nan());
    for (long b = 0; pitch > 0 && b < to.size() / pitch; ++b)
      for (long i = 0; i < count; ++i) to[b * pitch + i] = static_cast<Scalar>(f(b, i));
  }
  template <class F> void run(F f) {
    if constexpr (on_host) {
      team_->run(f);
    } else {
      const sk::ops::StepValues now{context.key, context.global_first, 1.0};
      std::memcpy(values_.data(), &now, sizeof now);
      sk::Worker alone;
      f(alone);
      there_.back();
    }
  }

  FrameType frame(const sk::Worker& w, ContextType& c) {
    const auto [lo, hi] = w.slice(batch);
    c = context;
    c.worker = w;
    c.first = lo;
    c.total = batch;
    c.global_first = context.global_first + static_cast<std::uint64_t>(lo);
    c.split = split_;
    c.exchange = exchange_.data();
    c.exchange_size = exchange_size;
    if (!on_host) {
      c.values = reinterpret_cast<const sk::ops::StepValues*>(there_.of(values_));
      c.global_first = 0;  // as in an executor: it counts from the values' then
    }
    FrameType f;
    f.parameters = there_.of(parameters);
    f.gradients = there_.of(gradients_[static_cast<std::size_t>(split_ ? 0 : w.index)]);
    f.buffers = there_.of(buffers);
    f.packed_weights = there_.of(packed_weights);
    f.x = sk::is_tokens<In> ? nullptr : there_.of(x) + lo * in_pitch;
    if (sk::is_tokens<In>) f.tokens = there_.of(tokens) + lo * in_count;
    f.y = there_.of(y) + lo * out_pitch;
    f.saved_for_backward = there_.of(saved_for_backward) + lo * info.saved_for_backward;
    f.saved_bytes = there_.of(saved_bytes) + lo * info.saved_bytes;
    f.batch_statistics = there_.of(batch_statistics);
    f.workspace = there_.of(workspace_[static_cast<std::size_t>(w.index)]);
    f.batch = hi - lo;
    f.ordinal = 3;
    f.context = &c;
    return f;
  }
  void compare(double& at, double gradient, double tolerance, double step) {
    const double middle = at;
    at = middle + step;
    const double up = objective();
    at = middle - step;
    const double down = objective();
    at = middle;
    CHECK(gradient == Approx((up - down) / (2 * step)).epsilon(tolerance).margin(tolerance));
  }

  std::vector<Guarded<Scalar>> gradients_, workspace_;
  Elsewhere<Device> there_;
  Guarded<std::byte> values_;  // a StepValues
  std::unique_ptr<sk::Workers> team_;
  std::vector<double> exchange_;
  bool split_;
};

}  // namespace support
