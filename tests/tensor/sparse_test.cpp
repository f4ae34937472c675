// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/reduce.hpp>
#include <skein/tensor/sparse.hpp>

#include <limits>
#include <vector>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;

namespace {

/// Random triples with repetitions, and what they add up to.
struct Triples {
  std::vector<long> row, column;
  std::vector<float> value;
  sk::Tensor<float, 2> dense;
};
Triples triples(long rows, long columns, long n, std::uint64_t seed) {
  Triples t;
  t.dense = sk::zeros<float>(rows, columns);
  for (long k = 0; k < n; ++k) {
    t.row.push_back(
        static_cast<long>(sk::random_below(seed, 1, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(rows))));
    t.column.push_back(
        static_cast<long>(sk::random_below(seed, 2, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(columns))));
    t.value.push_back(static_cast<float>(1 + k % 5));  // sums of small integers: exact
    t.dense(t.row.back(), t.column.back()) += t.value.back();
  }
  return t;
}

}  // namespace

TEST_CASE("a sparse matrix is made of triples in any order, duplicates summed") {
  const auto a =
      sk::Csr<float>::from_triples(3, 4, std::vector{2, 0, 2, 0}, std::vector{1, 3, 1, 0}, std::vector{5.f, 2.f, 6.f, 1.f});
  CHECK(a.shape() == sk::dims(3, 4));
  CHECK(a.entries() == 3);
  CHECK(list(a.offsets()) == std::vector<std::int32_t>{0, 2, 2, 3});
  CHECK(list(a.indices()) == std::vector<std::int32_t>{0, 3, 1});
  CHECK(list(a.values()) == std::vector<float>{1, 2, 11});
  CHECK(list(a.to_dense()) == std::vector<float>{1, 0, 0, 2, 0, 0, 0, 0, 0, 11, 0, 0});
  const auto edges = sk::Csr<void>::from_triples(3, 4, std::vector{2, 0, 2, 0}, std::vector{1, 3, 1, 0});
  CHECK(edges.entries() == 3);
  CHECK(list(edges.to_dense<int>()) == std::vector<int>{1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0});
  for (long rows : {1L, 7L, 60L})
    for (long n : {0L, 3L, 500L}) {
      const Triples t = triples(rows, 11, n, 5);
      CHECK(list(sk::Csr<float>::from_triples(rows, 11, t.row, t.column, t.value).to_dense()) == list(t.dense));
      CHECK(list(sk::Csr<void>::from_triples(rows, 11, t.row, t.column).to_dense()) == list(sk::cast<float>(t.dense != 0)));
    }
}

TEST_CASE("a sparse matrix goes to dense and back, is transposed, copied, narrowed and moved") {
  const Triples t = triples(9, 14, 40, 3);
  const auto a = sk::Csr<float>::from_dense(t.dense);
  CHECK(a.entries() == sum(t.dense != 0));
  CHECK(list(a.to_dense()) == list(t.dense));
  const auto turned = a.transpose();
  CHECK(turned.shape() == sk::dims(14, 9));
  CHECK(list(turned.to_dense()) == list(t.dense.transpose()));
  CHECK(list(turned.transpose().indices()) == list(a.indices()));  // so columns rise there, too
  const auto columns = turned.transpose().indices();               // of a temporary: a tensor of its own
  CHECK(list(columns) == list(a.indices()));
  CHECK(list(sk::Csr<float>::from_dense(t.dense * 2 - t.dense).values()) == list(a.values()));
  CHECK(list(a.without_values().transpose().to_dense()) == list(sk::cast<float>(t.dense.transpose() != 0)));
  CHECK(list(a.with_index<std::uint16_t>().to_dense()) == list(t.dense));
  CHECK(list(a.with_index<std::int64_t>().transpose().to_dense()) == list(t.dense.transpose()));
  CHECK(list(a.copy().to<sk::Cpu>().to_dense()) == list(t.dense));
  auto scaled = a.copy();
  scaled.values().assign(scaled.values() * 3);
  CHECK(list(scaled.to_dense()) == list(t.dense * 3));
  const float none = std::numeric_limits<float>::quiet_NaN();
  CHECK(sk::Csr<float>::from_dense(sk::Tensor<float, 2>{{none, 0}, {-0.f, 1}}).entries() == 2);
  CHECK(sk::Csr<float>::from_dense(sk::zeros<float>(3, 0)).transpose().shape() == sk::dims(0, 3));
  CHECK(sk::Csr<float>().entries() == 0);
}

TEST_CASE("a temporary sparse matrix gives its arrays, and no views") {
  const auto none = []<class X>(X*) {
    if constexpr (std::is_const_v<X>)
      static_assert(
          !requires { std::declval<X>().offsets(); } && !requires { std::declval<X>().indices(); } &&
          !requires { std::declval<X>().values(); });
    else
      static_assert(std::is_same_v<decltype(std::declval<X>().offsets()), sk::Tensor<typename X::Offset, 1>> &&
                    std::is_same_v<decltype(std::declval<X>().indices()), sk::Tensor<typename X::Index, 1>> &&
                    std::is_same_v<decltype(std::declval<X>().values()), sk::Tensor<typename X::Value, 1>>);
    static_assert(!requires { std::declval<X>().view(); });
  };
  none(static_cast<sk::Csr<float>*>(nullptr));
  none(static_cast<const sk::Csr<float>*>(nullptr));
  SUCCEED("static facts");
}

TEST_CASE("a sparse matrix that was moved from has no rows, and one that was moved to has all that it needs") {
  const Triples t = triples(9, 14, 40, 3);
  auto a = sk::Csr<float>::from_dense(t.dense), small = sk::Csr<float>::from_dense(sk::eye<float>(2));
  const auto b = std::move(a);
  CHECK(list(b.to_dense()) == list(t.dense));
  CHECK((a.shape() == sk::dims(0, 0) && a.entries() == 0 && a.copy().to_dense().size() == 0));
  CHECK(a.transpose().shape() == sk::dims(0, 0));
  a = b.copy();
  small = std::move(a);
  CHECK(list(small.to_dense()) == list(t.dense));
  CHECK(a.offsets().size() == a.rows() + 1);
  CHECK(a.to_dense().shape() == a.shape());
}

TEST_CASE("arrays from outside are taken as they are, after all of them were checked") {
  using A = sk::Csr<float>;
  using I = sk::Tensor<std::int32_t, 1>;
  using V = sk::Tensor<float, 1>;
  CHECK(list(A(2, 3, I{0, 1, 3}, I{2, 0, 1}, V{1, 2, 3}).to_dense()) == std::vector<float>{0, 0, 1, 2, 3, 0});
  CHECK(list(sk::Csr<void>(2, 3, I{0, 1, 3}, I{2, 0, 1}).to_dense()) == std::vector<float>{0, 0, 1, 1, 1, 0});
  CHECK(text_of([] {
          A(3, 3, I{0, 1, 3}, I{2, 0, 1}, V{1, 2, 3});
        }) == "Csr: 3 offsets for 3 rows: there is one for each, and one more");
  CHECK(text_of([] { A(2, 3, I{0, 1, 3}, I{2, 0, 1}, V{1, 2}); }) == "Csr: 2 values for 3 entries");
  CHECK(text_of([] {
          A(2, 3, I{0, 1, 9}, I{2, 0, 1}, V{1, 2, 3});
        }) == "Csr: the offsets go from 0 to 9, not from 0 to 3, the number of entries");
  CHECK(text_of([] { A(2, 3, I{1, 1, 3}, I{2, 0, 1}, V{1, 2, 3}); }).find("go from 1 to 3") != std::string::npos);
  CHECK(text_of([] { A(3, 3, I{0, 5, 2, 3}, I{2, 0, 1}, V{1, 2, 3}); }) == "Csr: the offsets fall at row 1");
  CHECK(text_of([] { A(3, 3, I{0, -7, 2, 3}, I{2, 0, 1}, V{1, 2, 3}); }) == "Csr: the offsets fall at row 0");
  CHECK(text_of([] { A(2, 3, I{0, 1, 3}, I{2, 0, 3}, V{1, 2, 3}); }) == "Csr: entry 2 is in column 3 of 3");
  CHECK(text_of([] { A(2, 3, I{0, 1, 3}, I{-1, 0, 1}, V{1, 2, 3}); }) == "Csr: entry 0 is in column -1 of 3");
  CHECK(text_of([] {
          A(2, 3, I{0, 1, 3}, I{2, 1, 1}, V{1, 2, 3});
        }) == "Csr: entry 2 in row 1 does not stand behind its neighbour: columns rise, Csr::from_triples sorts them");
  CHECK_THROWS_AS(A(2, 3, I{0, 1, 3}, I{2, 1, 1}, V{1, 2, 3}), sk::ArgumentError);
  CHECK_THROWS_AS(A(2, 3, I{0, 1, 3}, I{2, 0, 1}, V{1, 2}), sk::ShapeError);
}

TEST_CASE("triples that do not fit are named") {
  using A = sk::Csr<float>;
  CHECK(text_of([] {
          A::from_triples(2, 2, std::vector{0, 2}, std::vector{0, 0}, std::vector{1.f, 1.f});
        }) == "Csr::from_triples: entry 1 is in row 2 of 2");
  CHECK(text_of([] {
          A::from_triples(2, 2, std::vector<char>{1, 2}, std::vector<char>{0, 0}, std::vector{1.f, 1.f});
        }) == "Csr::from_triples: entry 1 is in row 2 of 2");
  CHECK(text_of([] {
          A::from_triples(2, 2, std::vector{0, 1}, std::vector{0, -1}, std::vector{1.f, 1.f});
        }) == "Csr::from_triples: entry 1 is in column -1 of 2");
  CHECK(text_of([] {
          A::from_triples(2, 2, std::vector{0u, 4294967295u}, std::vector{0, 1}, std::vector{1.f, 1.f});
        }) == "Csr::from_triples: entry 1 is in row 4294967295 of 2");
  CHECK(text_of([] {
          A::from_triples(2, 2, std::vector{0}, std::vector{0, 1}, std::vector{1.f});
        }) == "Csr::from_triples: 1 rows, 2 columns and 1 values: there is one of each for an entry");
  CHECK(text_of([] { A::from_triples(-1, 2, std::vector<int>{}, std::vector<int>{}, std::vector<float>{}); }) ==
        "Csr::from_triples: (-1, 2) is no shape of a matrix: extents are not negative");
  CHECK(text_of([] { A::from_triples(LONG_MAX, 2, std::vector<int>{}, std::vector<int>{}, std::vector<float>{}); }) ==
        "Csr::from_triples: no memory holds where 9223372036854775807 rows begin");
  CHECK(text_of([] { sk::Csr<void, sk::Cpu, std::uint16_t>::from_triples(2, 65537, std::vector<int>{}, std::vector<int>{}); }) ==
        "Csr::from_triples: 65537 columns do not fit the index type: take a wider one, Csr<..., Cpu, std::int64_t>");
  CHECK(text_of([] {
          sk::Csr<void>::from_triples(2, 70000, std::vector<int>{}, std::vector<int>{}).with_index<std::uint16_t>();
        }).find("do not fit the index type") != std::string::npos);
}
