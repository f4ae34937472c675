// SPDX-License-Identifier: Apache-2.0
// What ops::convert must do on any device: every pair of types, alignments, rows of other pitches.
#pragma once
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <vector>

#include <skein/device/copy.hpp>
#include <skein/device/memory.hpp>
#include <skein/ops/convert.hpp>

namespace convert_cases {

namespace sk = skein;

template <class T, class Device> sk::Arena<T, Device> there(const std::vector<T>& v) {
  sk::Arena<T, Device> a(v.size());
  sk::Copy<Device, sk::Cpu>::run(a.data(), v.data(), v.size() * sizeof(T));
  return a;
}
template <class T, class Device> std::vector<T> here(const sk::Arena<T, Device>& a) {
  std::vector<T> v(a.size());
  sk::Copy<sk::Cpu, Device>::run(v.data(), a.data(), v.size() * sizeof(T));
  return v;
}

template <class To, class From, class Device> void pair() {
  const long n = 1000;
  std::vector<From> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<From>(std::sin(static_cast<double>(i)) * std::pow(2.0, static_cast<double>(i % 40) - 25));
  const auto source = there<From, Device>(x);
  for (long at : {0L, 1L, 8L})
    for (long count : {0L, 1L, 7L, 64L, 65L, 801L}) {
      sk::Arena<To, Device> y(static_cast<std::size_t>(n));
      sk::ops::convert<Device>(y.data() + at, source.data() + at, count);
      const std::vector<To> got = here<To, Device>(y);
      int wrong = 0;
      for (long i = 0; i < n; ++i) {
        const bool inside = i >= at && i < at + count;
        const To want = inside ? static_cast<To>(x[static_cast<std::size_t>(i)]) : To(0);
        wrong += std::memcmp(&got[static_cast<std::size_t>(i)], &want, sizeof(To)) != 0;
      }
      INFO("from " << at << ", " << count << " values");
      CHECK(wrong == 0);
    }
  for (long columns : {5L, 8L, 20L})
    for (auto [to_pitch, from_pitch] : {std::pair<long, long>{32, 32}, {32, 20}, {21, 40}, {24, 48}}) {
      const long rows = 9;
      sk::Arena<To, Device> y(static_cast<std::size_t>(rows * to_pitch));
      sk::ops::convert_rows<Device>(y.data(), to_pitch, source.data(), from_pitch, rows, columns);
      const std::vector<To> got = here<To, Device>(y);
      int wrong = 0;
      for (long r = 0; r < rows; ++r)
        for (long c = 0; c < columns; ++c) {
          const To want = static_cast<To>(x[static_cast<std::size_t>(r * from_pitch + c)]);
          wrong += std::memcmp(&got[static_cast<std::size_t>(r * to_pitch + c)], &want, sizeof(To)) != 0;
        }
      INFO("rows of " << columns << ", " << from_pitch << " apart, to " << to_pitch);
      CHECK(wrong == 0);
    }
}

template <class Device> void all() {
  pair<sk::bf16, float, Device>();
  pair<float, sk::bf16, Device>();
  pair<sk::fp16, float, Device>();
  pair<float, sk::fp16, Device>();
  pair<sk::bf16, double, Device>();
  pair<double, sk::fp16, Device>();
  pair<float, double, Device>();
  pair<double, float, Device>();
}

}  // namespace convert_cases
