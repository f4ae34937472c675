// SPDX-License-Identifier: Apache-2.0
#include <skein/device/span.hpp>

#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;

TEST_CASE("a device span is a pointer and a size that know their device") {
  static_assert(std::is_trivially_copyable_v<sk::DeviceSpan<float, sk::Cuda>>);
  static_assert(std::is_convertible_v<sk::DeviceSpan<float>, sk::DeviceSpan<const float>>);
  static_assert(!std::is_convertible_v<sk::DeviceSpan<const float>, sk::DeviceSpan<float>>);
  static_assert(!std::is_convertible_v<sk::DeviceSpan<float, sk::Cuda>, sk::DeviceSpan<float>>);
  std::vector<float> v{1, 2, 3, 4};
  const sk::DeviceSpan<float> s{std::span<float>(v)};
  CHECK(s.size == 4);
  const auto middle = s.sub(1, 3);
  CHECK(middle.size == 2);
  middle[1] = 9;
  CHECK(v == std::vector<float>{1, 2, 9, 4});
  float sum = 0;
  for (float x : s) sum += x;
  CHECK(sum == 16);
}

TEST_CASE("device tags compare by ordinal, and only devices are devices") {
  static_assert(sk::DeviceTag<sk::Cpu> && sk::DeviceTag<sk::Cuda> && !sk::DeviceTag<int>);
  static_assert(sk::Cuda{0} == sk::Cuda{} && !(sk::Cuda{0} == sk::Cuda{1}) && sk::Cpu{} == sk::Cpu{});
  CHECK(sk::Cuda::name == "Cuda");
}
