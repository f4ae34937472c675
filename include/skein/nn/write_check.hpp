// SPDX-License-Identifier: Apache-2.0
// Does a layer write what it must: its output in forward, the gradient of its input in backward. What is forgotten there is not
// zero but what another layer has left, and a network trains on it without a word. In a debug build each pass on the host looks
// at it, and sk::check_gradients always does.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "../device/device.hpp"
#include "layer_name.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A run that looks at what layers write, in any build: static constexpr bool checks_writes = true.
template <class R> concept WatchesLayers = requires { requires R::checks_writes; };
/// Likewise one of a debug build, on the host.
template <class R> inline constexpr bool checks_writes = on_host<typename R::Device> && (SKEIN_CHECKED || WatchesLayers<R>);

namespace detail {
/// The error of a layer that does not write what it must.
struct Unwritten : ArgumentError {
  explicit Unwritten(const std::string& what) : ArgumentError(what) {}  // inherited, the constructor is too much for nvcc 13.0
};

/// Samples that layer L has to write, of which each value is marked before by a NaN that no calculation gives: all bits are one.
template <class L, class T> class WriteCheck {
 public:
  WriteCheck(T* to, long batch, const Extents& sample) : to_(to), batch_(batch), sample_(sample) {
    for (long s = 0; to && s < batch; ++s) std::memset(to + s * pitch(), 0xff, static_cast<std::size_t>(count()) * sizeof(T));
  }
  /// Throws ArgumentError, which names the layer and the first value that still has its mark.
  void assert_written(const char* pass, const char* what, const char* how) const {
    for (long s = 0; to_ && s < batch_; ++s)
      for (long i = 0; i < count(); ++i)
        if (is_marked(to_[s * pitch() + i]))
          throw Unwritten(
              text("{}: {} does not write {} (value {} of sample {}): assign it, {}; += adds to what was there before",
                   kind_of<typename Named<L>::type>(), pass, what, i, s, how));
  }

 private:
  long pitch() const { return sample_pitch(sample_); }
  long count() const { return sample_.count(); }
  static bool is_marked(const T& value) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    return std::all_of(bytes, bytes + sizeof(T), [](unsigned char b) { return b == 0xff; });
  }

  T* to_;
  long batch_;
  Extents sample_;
};
/// Throws the ArgumentError of a parameter whose gradient a layer forgets.
[[noreturn]] inline void refuse_missing_gradient(std::string_view layer, std::string_view parameter) {
  throw Unwritten(std::string(layer) + ": backward adds nothing to the gradient of its parameter '" + std::string(parameter) +
                  "', which would keep its initial value: f.gradient(\"" + std::string(parameter) +
                  "\"_p) += sum_leading(...); of one that is not trained sum_leading(0 * f.dy())");
}
struct NoWriteCheck {
  void assert_written(const char*, const char*, const char*) const {}
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::nn
