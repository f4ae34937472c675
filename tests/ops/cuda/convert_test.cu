// SPDX-License-Identifier: Apache-2.0
#include <skein/cuda.hpp>
#include <skein/ops/cuda/convert.hpp>

#include <cstring>

#include "../../support/convert_cases.hpp"

TEST_CASE("arrays are converted on the device as their values are", "[ops][cuda]") { convert_cases::all<skein::Cuda>(); }

namespace sk = skein;

namespace {
/// All 16-bit values; and floats: each of them, the middle to the next one, and the floats beside that.
template <class Half> std::vector<float> borders() {
  std::vector<float> all;
  for (std::uint32_t b = 0; b < 65536; ++b) {
    const auto value = [](std::uint32_t bits) { return static_cast<float>(Half::from_bits(static_cast<std::uint16_t>(bits))); };
    const float at = value(b), next = value((b & 0x7fff) == 0x7fff ? b : b + 1), middle = at + (next - at) / 2;
    for (const float v : {at, middle, std::nextafter(middle, -INFINITY), std::nextafter(middle, INFINITY)}) all.push_back(v);
  }
  for (const float v : {65519.0f, 65520.0f, 1e30f, 1e-30f, 1e-42f, 3.4e38f}) all.push_back(v), all.push_back(-v);
  return all;
}
/// How many values the device turns into other bits than the integers of half.hpp; of NaNs only that they are ones.
template <class To, class From> int differ(const std::vector<From>& x) {
  const auto source = convert_cases::there<From, sk::Cuda>(x);
  sk::Arena<To, sk::Cuda> y(x.size());
  sk::ops::convert<sk::Cuda>(y.data(), source.data(), static_cast<long>(x.size()));
  const std::vector<To> got = convert_cases::here<To, sk::Cuda>(y);
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const To want = static_cast<To>(x[i]);
    const bool nan = std::isnan(static_cast<float>(want));
    wrong += nan ? !std::isnan(static_cast<float>(got[i])) : std::memcmp(&got[i], &want, sizeof want) != 0;
  }
  return wrong;
}
}  // namespace

TEMPLATE_TEST_CASE("a device's conversions of 16-bit values are those of the host", "[ops][cuda]", skein::bf16, skein::fp16) {
  std::vector<TestType> all;
  for (std::uint32_t b = 0; b < 65536; ++b) all.push_back(TestType::from_bits(static_cast<std::uint16_t>(b)));
  CHECK(differ<float>(all) == 0);
  CHECK(differ<TestType>(borders<TestType>()) == 0);
}
