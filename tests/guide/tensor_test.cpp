// SPDX-License-Identifier: Apache-2.0
// What docs/guide quotes of tensor and ops. A region stands between [quote name] and [end].
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <skein/skein.hpp>

#include "../support/temporary_folder.hpp"

namespace sk = skein;

TEST_CASE("tensors and expressions", "[guide]") {
  // [quote make]
  sk::Tensor<float, 2> a{{1, 2, 3}, {4, 5, 6}};     // braces hold values
  sk::Tensor<float, 2> z = sk::zeros<float>(2, 3);  // extents come by name
  const sk::Tensor noise = sk::normal<float>(sk::Seed{1}, sk::dims(2, 3));
  const sk::Tensor<float, 1> v{10, 20, 30};
  // [end]
  // [quote expression]
  z = where(a > 2, a * v + 0.5f, 0);                          // one loop; v is broadcast over the rows
  auto scaled = a * 0.5f;                                     // an expression: nothing is computed yet
  const sk::Tensor<float, 1> rows = sum(scaled * scaled, 1);  // no product is stored
  const float largest = max(abs(noise));
  // [end]
  CHECK(z(0, 1) == 0);
  CHECK(z(1, 2) == 180.5f);
  CHECK(rows(0) == Approx(3.5));
  CHECK(largest > 0);
  // [quote slices]
  const float corner = a(1, 2);                         // 6
  const auto column = a(sk::all, -2);                   // a view, (2); in slices indices count from the back, too
  a(0) = v;                                             // writes the first row
  const auto block = a(sk::range(0, 2), sk::range(1));  // a view, (2, 2)
  const sk::Tensor<float, 2> turned = a.transpose();    // a copy, since it is a Tensor
  // [end]
  CHECK(corner == 6);
  CHECK(column(0) == 20);
  CHECK(block(0, 0) == 20);
  CHECK(turned(2, 1) == 6);
}

TEST_CASE("files of NumPy", "[guide]") {
  const support::TemporaryFolder folder;
  const sk::Tensor<float, 2> a{{1, 2, 3}, {4, 5, 6}};
  // [quote files]
  save_npy(folder / "a.npy", a);
  const sk::Tensor<float, 2> b = sk::load_npy<float, 2>(folder / "a.npy");
  sk::NpzWriter out(folder / "weights.npz", sk::NpzMethod::deflated);
  out.add("first", a);
  out.close();
  const sk::Tensor<float, 2> c = sk::load_npz(folder / "weights.npz").get<float, 2>("first");
  // [end]
  CHECK(b(1, 2) == 6);
  CHECK(c(1, 2) == 6);
}

TEST_CASE("matrix products", "[guide]") {
  const sk::Tensor<float, 2> a{{1, 2}, {3, 4}, {5, 6}};
  // [quote products]
  sk::Tensor<float, 2> square = mm(a.transpose(), a);  // (2, 3) (3, 2); the transpose is not copied
  const sk::Tensor<float, 1> y = mv(a, sk::Tensor<float, 1>{1, -1});
  sk::ops::gemm<sk::Cpu>(sk::ops::Transpose::yes, sk::ops::Transpose::no, 2, 2, 3, 1.0f, a.data(), 2, a.data(), 2, 0.0f,
                         square.data(), 2);  // the same, over plain arrays
  // [end]
  CHECK(square(0, 1) == 44);
  CHECK(y(2) == -1);
}

TEST_CASE("sparse matrices", "[guide]") {
  const std::vector<int> from{0, 0, 1, 2}, to{1, 2, 2, 0};
  const std::vector<float> weight{1, 2, 3, 4};
  const sk::Tensor<float, 1> x{1, 10, 100};
  // [quote sparse]
  const auto a = sk::Csr<float>::from_triples(3, 3, from, to, weight);  // in any order; duplicates are summed
  const auto links = sk::Csr<void>::from_triples(3, 3, from, to);       // a pattern: every entry is one
  const sk::Tensor<float, 1> y = mv(a, x);
  const sk::Tensor<float, 1> counts = mv(links.transpose(), sk::ones<float>(3));
  sk::Tensor<float, 1> target = sk::zeros<float>(3);
  sk::Workers workers(2);
  workers.run([&](sk::Worker& w) { mv_into(target.view(), links, x, w); });  // each writes its share of the rows
  // [end]
  CHECK(y(0) == 210);
  CHECK(counts(2) == 2);
  CHECK(target(0) == 110);
}

TEST_CASE("sorting", "[guide]") {
  const sk::Tensor<float, 1> v{3, 9, 1, 7};
  // [quote sort]
  const sk::Tensor<float, 1> rising = sort(v);
  const sk::Tensor<long, 1> best = sk::argsort<sk::Order::descending>(v)(sk::range(0, 2));  // where the two largest are
  // [end]
  CHECK(rising(0) == 1);
  CHECK(best(1) == 3);
}
