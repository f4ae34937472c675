// SPDX-License-Identifier: Apache-2.0
// Values that are loaded and stored together: 16 bytes where arrays are aligned, as the memory of a GPU wants it; else one by
// one.
#pragma once
#include <cstdint>

#include "../../core/half.hpp"

namespace skein::inline SKEIN_ABI::ops::cuda {

/// Width neighbours of an array.
template <class Scalar, int Width> struct alignas(sizeof(Scalar) * Width) Pack { Scalar value[Width]; };

/// Values of 16 bytes.
template <class Scalar> inline constexpr int pack_width = sizeof(Scalar) < 16 ? static_cast<int>(16 / sizeof(Scalar)) : 1;

/// What values of T are computed in: float for the 16-bit types.
template <class T> using Compute = std::conditional_t<is_half<T>, float, T>;

/// Are the arrays such that packs lie on 16 bytes? Null counts as aligned.
template <class... T> bool aligned_16(const T*... arrays) {
  return (... && (reinterpret_cast<std::uintptr_t>(arrays) % 16 == 0));
}

/// a / b for what is not negative: in 32 bits where both fit, a fifth of the time on a GPU.
constexpr long quotient(long a, long b) {
  return ((a | b) >> 32) == 0 ? static_cast<long>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b)) : a / b;
}

/// The Width values at `from`, which is aligned to all of them.
template <int Width, class Scalar> SKEIN_HOST_DEVICE Pack<Scalar, Width> load(const Scalar* from) {
  return *reinterpret_cast<const Pack<Scalar, Width>*>(from);
}
/// Writes a pack to `to`, which is aligned to all of it.
template <int Width, class Scalar> SKEIN_HOST_DEVICE void store(Scalar* to, const Pack<Scalar, Width>& pack) {
  *reinterpret_cast<Pack<Scalar, Width>*>(to) = pack;
}

}  // namespace skein::inline SKEIN_ABI::ops::cuda
