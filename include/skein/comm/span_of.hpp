// SPDX-License-Identifier: Apache-2.0
// What a communicator takes: a DeviceSpan, or anything contiguous that has data() and size() (std::vector, std::span,
// std::array, a tensor). A span of another device is refused with one sentence.
#pragma once
#include <cstddef>
#include <type_traits>

#include "../device/span.hpp"
#include "op.hpp"

namespace skein::inline SKEIN_ABI::comm {

template <class T> struct IsDeviceSpan : std::false_type {};
template <class T, DeviceTag Device> struct IsDeviceSpan<DeviceSpan<T, Device>> : std::true_type {};

/// What a communicator takes as a span: a DeviceSpan, or anything of its device with data() and size(), as a tensor.
template <class R> concept SpanLike = IsDeviceSpan<std::remove_cvref_t<R>>::value || requires(R& r) {
  *r.data();
  static_cast<std::size_t>(r.size());
};

/// R's span on Device; does not compile, with a sentence, where R is on another.
template <class Device, class R> struct span_on {
  static_assert(
      std::is_same_v<Device, DeviceOf<R>>,
      "this communicator moves memory of another device: take the communicator of the span's device (NcclComm for Cuda), "
      "or copy the values with .to<>() first");
};

/// The range as a span on the communicator's device.
template <class Device, SpanLike R> constexpr auto span_of(R&& range) {
  (void)sizeof(span_on<Device, std::remove_cvref_t<R>>);
  if constexpr (IsDeviceSpan<std::remove_cvref_t<R>>::value) {
    return DeviceSpan<std::remove_pointer_t<decltype(range.data)>, Device>{range.data, range.size};
  } else {
    return DeviceSpan<std::remove_pointer_t<decltype(range.data())>, Device>{range.data(),
                                                                             static_cast<std::size_t>(range.size())};
  }
}

/// Does not compile, with a sentence, where a communicator cannot reduce a type with an operation.
template <bool Known, std::size_t Alignment> struct reduces {
  static_assert(Known || Alignment <= 16,
                "communicators reduce values that are aligned to 16 bytes at most: leave alignas out of the type, or reduce its "
                "members as a span of scalars");
  static_assert(Known || Alignment > 16,
                "this communicator cannot reduce this type with this operation: take sk::Sum, Mean, Max or Min of a scalar, or, "
                "where the communicator allows it, a small function object T(T, T)");
};

}  // namespace skein::inline SKEIN_ABI::comm
