// SPDX-License-Identifier: Apache-2.0
// Sums, copies and fills on the GPU: exact, whatever the alignment; nothing beside the arrays is touched.
#include <skein/ops/cuda/elementwise.hpp>

#include <catch2/catch.hpp>

#include "../../support/device_array.hpp"

namespace sk = skein;
namespace ops = skein::ops;
using support::DeviceArray;

namespace {
template <class T> std::vector<T> count(long n, double factor = 1) {
  std::vector<T> v;
  for (long i = 0; i < n; ++i) v.push_back(static_cast<T>(static_cast<float>(factor * static_cast<double>(i % 100))));
  return v;
}
template <class T> std::vector<float> floats(const std::vector<T>& v) { return {v.begin(), v.end()}; }
}  // namespace

TEMPLATE_TEST_CASE("Sums, copies and fills on the GPU are exact", "[ops][cuda]", float, double, sk::bf16, sk::fp16) {
  for (const long n : {1L, 4L, 7L, 8L, 1001L})
    for (const long shift : {0L, 1L}) {
      const std::vector<TestType> a = count<TestType>(n), b = count<TestType>(n, 0.5);
      const DeviceArray<TestType> there_a(a), there_b(b, shift);
      DeviceArray<TestType> sum(a.size(), TestType(3.0f), shift), same(a.size(), TestType(3.0f), shift),
          filled(a.size(), TestType(3.0f), shift);
      ops::add<sk::Cuda>(sum.data(), there_a.data(), there_b.data(), n);
      ops::copy<sk::Cuda>(same.data(), there_b.data(), n);
      ops::fill<sk::Cuda>(filled.data(), TestType(0.25f), n);
      std::vector<TestType> expected(a.size());
      ops::add<sk::Cpu>(expected.data(), a.data(), b.data(), n);
      CHECK(floats(sum.host()) == floats(expected));
      CHECK(floats(same.host()) == floats(b));
      CHECK(floats(filled.host()) == std::vector<float>(a.size(), 0.25f));
    }
}

TEMPLATE_TEST_CASE("Rows are copied between pitches on the GPU, and what lies between them stays", "[ops][cuda]", float, double,
                   sk::bf16) {
  struct Case {
    long rows, columns, from, to;
  };
  for (const Case& c : {Case{3, 5, 8, 16}, Case{4, 8, 8, 16}, Case{7, 16, 32, 16}, Case{5, 10, 10, 10}, Case{6, 3, 3, 7},
                        Case{1, 9, 9, 16}, Case{0, 4, 4, 4}})
    for (const long shift : {0L, 2L}) {
      const std::vector<TestType> from = count<TestType>(c.rows * c.from);
      std::vector<TestType> expected(static_cast<std::size_t>(c.rows * c.to), TestType(9.0f));
      const DeviceArray<TestType> there(from);
      DeviceArray<TestType> to(expected, shift);
      ops::copy_rows<sk::Cuda>(to.data(), c.to, there.data(), c.from, c.rows, c.columns);
      ops::copy_rows<sk::Cpu>(expected.data(), c.to, from.data(), c.from, c.rows, c.columns);
      CHECK(floats(to.host()) == floats(expected));
    }
}
