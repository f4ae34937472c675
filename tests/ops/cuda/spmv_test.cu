// SPDX-License-Identifier: Apache-2.0
// Sparse products on a device: by the library where it takes the matrix, by own kernels where not, against the Cpu.
#include <skein/ops/cuda/spmv.hpp>
#include <skein/ops/sparse_product.hpp>
#include <skein/tensor/create.hpp>
#include <skein/tensor/cuda/evaluator.hpp>

#include <catch2/catch.hpp>
#include "sparse_cases.hpp"

using namespace tensor_test;
using sk::range;

TEMPLATE_TEST_CASE("sparse products on a device are the Cpu's", "", float, double) {
  using S = TestType;
  for (long columns : {1L, 13L, 300L})
    for (double share : {0., 0.1, 1.}) {
      const auto a = sk::Csr<S>::from_dense(thinned<S>(40, columns, share, 1));
      const auto pattern = a.without_values();
      const auto x = values<S>(sk::dims(columns), 2);
      const auto b = values<S>(sk::dims(columns, 9), 3);
      const auto window = b(sk::all, range(1, 8));
      const auto y = x.template to<sk::Cuda>();
      const auto c = b.template to<sk::Cuda>();
      const auto there = c(sk::all, range(1, 8));
      const auto check = [&](const auto& here) {
        const auto moved = here.template to<sk::Cuda>();
        CHECK(near(mv(moved, y).template to<sk::Cpu>(), mv(here, x), 300));
        CHECK(near(mm(moved, there).template to<sk::Cpu>(), mm(here, window), 300));
      };
      check(a);
      check(pattern);
      check(pattern.template with_index<std::uint16_t>());
      check(a.template with_index<std::int64_t>());
      CHECK(near(mv(a.template to<sk::Cuda>(), y * 2 - 1).template to<sk::Cpu>(), mv(a, x * 2 - 1), 300));
    }
}

TEST_CASE("sparse matrices move between devices, and are turned through the host") {
  const sk::cuda::UseDevice first(sk::Cuda{0});
  const auto m = thinned<float>(7, 12, 0.4, 1);
  const auto a = sk::Csr<float>::from_dense(m);
  const auto there = a.to<sk::Cuda>();
  CHECK(there.device() == sk::Cuda{0});
  CHECK(list(there.to<sk::Cpu>().to_dense()) == list(m));
  CHECK(list(there.to_dense().to<sk::Cpu>()) == list(m));
  CHECK(list(there.transpose().to_dense().to<sk::Cpu>()) == list(m.transpose()));
  CHECK(list(sk::Csr<float>::from_dense(m.to<sk::Cuda>()).values()) == list(a.values()));
  CHECK(list(there.copy().without_values().to_dense().to<sk::Cpu>()) == list(sk::cast<float>(m != 0)));
  if (sk::cuda::device_count() < 2) {
    WARN("the rest takes two GPUs");
    return;
  }
  const auto second = there.to(sk::Cuda{1});
  const auto x = sk::ones<float>(sk::Cuda{1}, 12);
  CHECK(near(mv(second, x).to<sk::Cpu>(), mv(a, sk::ones<float>(12)), 12));
  CHECK(sk::cuda::current_device() == sk::Cuda{0});
  CHECK(text_of([&] { mv(there, x); }) == "mv: tensors on Cuda 0 and 1 meet: move one of them with .to()");
}
