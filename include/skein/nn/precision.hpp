// SPDX-License-Identifier: Apache-2.0
// Precision as a policy of the model: in which type products are made (and with it, in which activations are stored between the
// layers), in which they are summed, and in which the weights are kept.
//
//     sk::Model<Network, Input, sk::Cpu, sk::precision::bf16> model;
//
// Parameters, gradients, optimizer state, buffers and files are of the master type: a file does not show what it was trained in.
// Micikevicius et al., "Mixed precision training", ICLR 2018; bfloat16: Kalamkar et al., arXiv:1905.12322.
#pragma once
#include <concepts>
#include <string_view>

#include "../core/half.hpp"
#include "layer.hpp"

namespace skein::inline SKEIN_ABI {

/// A compute type only: floats whose products are made by the matrix units of a GPU, which round the operands to 10 bits of
/// mantissa.
struct tf32 {};

namespace detail {
enum class PrecisionFault { none, compute, accumulate, master, narrow_accumulate, narrow_master, apart };

/// Bits of mantissa, the hidden one too; 0: no type to compute in.
template <class T> consteval int mantissa_bits() {
  return std::same_as<T, double>                          ? 53
         : std::same_as<T, float>                         ? 24
         : std::same_as<T, tf32> || std::same_as<T, fp16> ? 11
         : std::same_as<T, bf16>                          ? 8
                                                          : 0;
}
template <class Compute, class Accumulate, class Master> consteval PrecisionFault precision_fault() {
  constexpr bool sums = std::same_as<Accumulate, float> || std::same_as<Accumulate, double>;
  constexpr bool keeps = std::same_as<Master, float> || std::same_as<Master, double>;
  if (mantissa_bits<Compute>() == 0) return PrecisionFault::compute;
  if (!sums) return PrecisionFault::accumulate;
  if (!keeps) return PrecisionFault::master;
  if (mantissa_bits<Master>() < mantissa_bits<Compute>()) return PrecisionFault::narrow_master;
  if (mantissa_bits<Accumulate>() < mantissa_bits<Compute>()) return PrecisionFault::narrow_accumulate;
  if (!std::same_as<Accumulate, Master>) return PrecisionFault::apart;
  return PrecisionFault::none;
}
}  // namespace detail

/// Products in Compute (float, double, sk::tf32, sk::bf16, sk::fp16), sums in Accumulate, weights in Master (float or double, the
/// same type: gradients are summed where the weights are). Refuses, with one sentence, what would lose the weights' or the sums'
/// bits.
template <class Compute, class Accumulate = float, class Master = float> class Precision {
 public:
  using compute = Compute;
  using accumulate = Accumulate;
  using master = Master;
  /// What activations and their gradients are stored in.
  using activation = std::conditional_t<std::same_as<Compute, tf32>, float, Compute>;
  static constexpr nn::FloatMath math = std::same_as<Compute, tf32> ? nn::FloatMath::tf32 : nn::FloatMath::full;
  /// Are activations stored in another type than the weights.
  static constexpr bool mixed = !std::same_as<activation, Master>;

 private:
  static constexpr detail::PrecisionFault fault = detail::precision_fault<Compute, Accumulate, Master>();
  using F = detail::PrecisionFault;
  // At the end: clang knows no member behind the first assertion that fails.
  static_assert(fault != F::compute,
                "Precision<Compute, Accumulate, Master>: Compute is float, double, sk::tf32, sk::bf16 or sk::fp16");
  static_assert(fault != F::accumulate,
                "Precision<Compute, Accumulate, Master>: Accumulate is float or double: sums of 16-bit numbers stop growing at "
                "256 or 2048");
  static_assert(
      fault != F::master,
      "Precision<Compute, Accumulate, Master>: Master is float or double: the step of an optimizer is lost in 16-bit weights");
  static_assert(fault != F::narrow_master,
                "Precision<Compute, Accumulate, Master>: the master weights are narrower than what is computed of them: make "
                "Master at least Compute");
  static_assert(
      fault != F::narrow_accumulate,
      "Precision<Compute, Accumulate, Master>: the sums are narrower than their products: make Accumulate at least Compute");
  static_assert(
      fault != F::apart,
      "Precision<Compute, Accumulate, Master>: gradients are summed where the master weights are: Accumulate must be Master");
};

/// The usual ones.
namespace precision {
using fp32 = Precision<float>;
using tf32 = Precision<skein::tf32>;  ///< on a GPU; refused on the Cpu, where it would change nothing
using bf16 = Precision<skein::bf16>;
using fp16 = Precision<skein::fp16>;  ///< needs loss scaling: see optim/loss_scaler.hpp
}  // namespace precision

namespace detail {
/// A model's last argument is a scalar, which is everything, or a Precision.
template <class X> struct PrecisionOf { using type = Precision<X, X, X>; };
template <class C, class A, class M> struct PrecisionOf<Precision<C, A, M>> { using type = Precision<C, A, M>; };

// Does the device have what the type names. (Specialised, so that a Precision that is at fault itself is not looked into.)
template <class P, class Device> inline constexpr bool has_its_units = true;
template <class A, class M> inline constexpr bool has_its_units<Precision<tf32, A, M>, Cpu> = false;

template <class T> constexpr std::string_view scalar_name() {
  return std::same_as<T, bf16>    ? "bf16"
         : std::same_as<T, fp16>  ? "fp16"
         : std::same_as<T, tf32>  ? "tf32"
         : std::same_as<T, float> ? "fp32"
                                  : "fp64";
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI
