// SPDX-License-Identifier: Apache-2.0
// Tensors from nothing: zeros, ones, full, eye, diag, arange, linspace, and random fills keyed by a Seed: a value depends on
// (seed, stream, row-major index) only, never on threads, ranks, padding or device.
#pragma once
#include <type_traits>

#include "../core/random.hpp"
#include "tensor.hpp"

namespace skein::inline SKEIN_ABI {

/// zeros<float>(5, 3); on a device: zeros<float>(Cuda{1}, 5, 3).
template <class Scalar, DeviceTag Device, std::integral... E> auto zeros(Device where, E... extents) {
  return Tensor<Scalar, static_cast<int>(sizeof...(E)), Device>(dims(extents...), where);
}
template <class Scalar, class Device = Cpu, std::integral... E> auto zeros(E... extents) {
  return zeros<Scalar>(Device{}, extents...);
}

/// full(dims(5, 3), 0.5f); on a device: full(dims(5, 3), 0.5f, Cuda{1}).
template <int Rank, Number Scalar, DeviceTag Device = Cpu> auto full(const Dims<Rank>& extents, Scalar value, Device where = {}) {
  Tensor<Scalar, Rank, Device> t(extents, where);
  t = value;
  return t;
}
/// A tensor of ones.
template <class Scalar, DeviceTag Device, std::integral... E> auto ones(Device where, E... extents) {
  return full(dims(extents...), static_cast<Scalar>(1), where);
}
template <class Scalar, class Device = Cpu, std::integral... E> auto ones(E... extents) {
  return ones<Scalar>(Device{}, extents...);
}

/// The identity matrix.
template <class Scalar, DeviceTag Device = Cpu> Tensor<Scalar, 2, Device> eye(long n, Device where = {}) {
  Tensor<Scalar, 2, Device> t(dims(n, n), where);
  t.diagonal().assign(Scalar(1));
  return t;
}
/// The square matrix with these values on its diagonal.
template <TensorExpression E> auto diag(E&& values) {
  using T = std::remove_cvref_t<E>;
  static_assert(T::rank == 1, "diag takes a vector; diagonal() reads the diagonal of a matrix");
  const long n = values.shape()[0];
  Tensor<typename T::Scalar, 2, typename T::Device> t(dims(n, n), values.device());
  t.diagonal().assign(std::forward<E>(values));
  return t;
}
template <class Scalar> Tensor<Scalar, 2, Cpu> diag(std::initializer_list<Scalar> values) {
  return diag(Tensor<Scalar, 1, Cpu>(values));
}

namespace functions {
/// start + i * step.
template <class S> struct Ramp {
  S start, step;
  constexpr S operator()(long i) const {
    if constexpr (std::is_integral_v<S>)  // i * step may be more than S holds where start + i * step is not
      return static_cast<S>(static_cast<unsigned long>(start) + static_cast<unsigned long>(i) * static_cast<unsigned long>(step));
    else return static_cast<S>(start + static_cast<S>(i) * step);
  }
};
/// Ends exactly at `last`, whatever the rounding of the step.
template <class S> struct EvenSteps {
  S first, last;
  long intervals;
  constexpr S operator()(long i) const {
    if (i == intervals) return last;
    const double from = static_cast<double>(first), way = static_cast<double>(last) - from;  // of floats more than one holds
    return static_cast<S>(from + way * (static_cast<double>(i) / static_cast<double>(intervals)));
  }
};
/// The i-th number of a stream, uniform in [low, low + width).
template <class S> struct UniformAt {
  std::uint64_t key, stream;
  S low, width;
  constexpr S operator()(long i) const {
    return low + width * static_cast<S>(random_uniform(key, stream, static_cast<std::uint64_t>(i)));
  }
};
/// The i-th number of a stream, normal with this mean and deviation.
template <class S> struct NormalAt {
  std::uint64_t key, stream;
  S mean, deviation;
  SKEIN_HOST_DEVICE S operator()(long i) const {
    return mean + deviation * static_cast<S>(random_normal(key, stream, static_cast<std::uint64_t>(i)));
  }
};
}  // namespace functions

namespace detail {
/// How many of start, start + step, ... lie before end; of whole numbers exactly, also where a double does not hold them.
template <class S> long steps_before(S start, S end, S step) {
  constexpr long most = 1L << 60;  // Tensor says that it is no shape, if it is one more
  if constexpr (std::is_integral_v<S>) {
    const bool rises = step > S(0);
    if (rises ? start >= end : start <= end) return 0;
    const auto size = [](S x) { return static_cast<unsigned long>(x); };
    const unsigned long way = rises ? size(end) - size(start) : size(start) - size(end);
    const unsigned long last = (way - 1) / (rises ? size(step) : 0 - size(step));
    return (last < static_cast<unsigned long>(most) ? static_cast<long>(last) : most) + 1;
  } else {
    const double count = std::ceil((static_cast<double>(end) - static_cast<double>(start)) / static_cast<double>(step));
    if (!(count <= static_cast<double>(most)))
      throw ArgumentError(
          text("arange: from {} to {} by {} is no number of values that a tensor has: all three are finite, and "
               "the step is not too small",
               start, end, step));
    const functions::Ramp<S> value{start, step};  // rounded: the last ones may be the end
    long before = 0, behind = count > 0 ? static_cast<long>(count) : 0;
    while (before < behind) {
      const long i = before + (behind - before) / 2;
      if (step > S(0) ? value(i) < end : value(i) > end) before = i + 1;
      else behind = i;
    }
    return before;
  }
}
}  // namespace detail

/// 0, 1, ... n - 1; start, start + step, ... as many as lie before end. Throws ArgumentError where the step is 0, and where
/// there are infinitely many or no number of them (NaN).
template <Number Scalar, DeviceTag Device = Cpu>
Tensor<Scalar, 1, Device> arange(Scalar start, Scalar end, Scalar step = Scalar(1), Device where = {}) {
  if (step == Scalar(0)) throw ArgumentError("arange: the step is 0");
  const long n = detail::steps_before(start, end, step);
  return Tensor<Scalar, 1, Device>(detail::Generator<functions::Ramp<Scalar>, 1, Device>{{start, step}, dims(n), where});
}
template <Number Scalar, DeviceTag Device = Cpu> Tensor<Scalar, 1, Device> arange(Scalar end, Device where = {}) {
  return arange(Scalar(0), end, Scalar(1), where);
}
/// n values from first to last, both included.
template <std::floating_point Scalar, DeviceTag Device = Cpu>
Tensor<Scalar, 1, Device> linspace(Scalar first, Scalar last, long n, Device where = {}) {
  if (n < 2) throw ArgumentError(text("linspace: {} values: it takes at least the two ends", n));
  return Tensor<Scalar, 1, Device>(
      detail::Generator<functions::EvenSteps<Scalar>, 1, Device>{{first, last, n - 1}, dims(n), where});
}

namespace detail {
template <class S> constexpr void assert_random() {
  static_assert(std::is_floating_point_v<S>,
                "random values are float or double: cast<Scalar>(floor(...)) of those makes integers");
}
}  // namespace detail

/// An expression of uniform values, float or double, with 24 random bits each, in [low, high) (by rounding it may be high
/// itself); `stream` tells several fills of one seed apart.
template <class Scalar, class Device = Cpu, int Rank>
auto uniform(Seed seed, const Dims<Rank>& extents, Scalar low = 0, Scalar high = 1, std::uint64_t stream = 0, Device where = {}) {
  detail::assert_random<Scalar>();
  return detail::Generator<functions::UniformAt<Scalar>, Rank, Device>{
      {random_key(seed.value, 0x756e69), stream, low, high - low}, extents, where};
}
/// An expression of normal values, float or double.
template <class Scalar, class Device = Cpu, int Rank> auto normal(Seed seed, const Dims<Rank>& extents, Scalar mean = 0,
                                                                  Scalar deviation = 1, std::uint64_t stream = 0,
                                                                  Device where = {}) {
  detail::assert_random<Scalar>();
  return detail::Generator<functions::NormalAt<Scalar>, Rank, Device>{
      {random_key(seed.value, 0x6e6f72), stream, mean, deviation}, extents, where};
}
/// Fills a tensor or a view in place: fill_uniform(t.view(), Seed{1}).
template <class S, int R, class D> void fill_uniform(const TensorView<S, R, D>& to, Seed seed, std::type_identity_t<S> low = 0,
                                                     std::type_identity_t<S> high = 1, std::uint64_t stream = 0) {
  assign(to, uniform<S, D>(seed, to.extents, low, high, stream, to.where));
}
/// Fills with normal random numbers; element i depends on the seed, the stream and i alone.
template <class S, int R, class D> void fill_normal(const TensorView<S, R, D>& to, Seed seed, std::type_identity_t<S> mean = 0,
                                                    std::type_identity_t<S> deviation = 1, std::uint64_t stream = 0) {
  assign(to, normal<S, D>(seed, to.extents, mean, deviation, stream, to.where));
}

}  // namespace skein::inline SKEIN_ABI
