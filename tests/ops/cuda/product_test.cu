// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt: plans are made once, an epilogue that the library lacks is said and not thrown, errors name the shapes.
#include <skein/ops/cuda/dense.hpp>

#include <catch2/catch.hpp>

#include <thread>

#include <skein/device/cuda/memory.hpp>

#include "../../support/on_device.hpp"

namespace sk = skein;
namespace cublas = skein::ops::cublas;
using support::OnDevice;

namespace {
cublas::Product product(OnDevice<float>& a, OnDevice<float>& b, OnDevice<float>& d) {
  return {.m = 2, .n = 4, .k = 4, .a = a.data(), .b = b.data(), .d = d.data(), .lda = 4, .ldb = 4, .ldd = 4};
}
std::size_t plans() { return cublas::detail::library().plans.size(); }
}  // namespace

TEST_CASE("A product's plan is made once", "[cublas]") {
  OnDevice<float> a({1, 2, 3, 0, 4, 5, 6, 0}), b(16, 1.0f), d(8, 0.0f), bias({1, 2, 3, 4});
  cublas::Product p = product(a, b, d);
  REQUIRE(cublas::prepare(p));
  const std::size_t before = plans();
  CHECK(cublas::multiply(p));
  p.beta = 1;  // factors are not part of it
  CHECK(cublas::multiply(p));
  CHECK(d.values() == std::vector<float>{12, 12, 12, 12, 30, 30, 30, 30});
  OnDevice<float> other(8, 0.0f);
  p.d = other.data();  // nor are addresses that are aligned alike
  CHECK(cublas::multiply(p));
  CHECK(plans() == before);
  p.epilogue = cublas::Epilogue::bias;
  p.vector = bias.data();
  p.beta = 0;
  CHECK(cublas::multiply(p));
  CHECK(plans() == before + 1);
  CHECK(other.values() == std::vector<float>{7, 8, 9, 10, 16, 17, 18, 19});
  OnDevice<float> bias2({-1, -2, -3, -4});
  p.vector = bias2.data();
  CHECK(cublas::multiply(p));
  CHECK(plans() == before + 1);
  CHECK(other.values() == std::vector<float>{5, 4, 3, 2, 14, 13, 12, 11});
}
TEST_CASE("What prepare() plans is what a layer runs", "[cublas]") {
  OnDevice<float> x(5 * 32, 1.0f), y(5 * 16, 0.0f), w(24 * 16, 1.0f), bias(16, 1.0f), dw(24 * 16, 0.0f), db(16, 0.0f);
  const sk::ops::Dense<sk::Cuda, float, 24, 10> dense;
  dense.prepare<sk::ops::Keep, float>(5, w.data(), bias.data(), dw.data(), db.data());
  const std::size_t before = plans();
  dense.forward<sk::ops::Keep>(5, x.data(), w.data(), nullptr, static_cast<const float*>(bias.data()), y.data());
  dense.input_gradient(5, y.data(), w.data(), nullptr, nullptr, x.data());
  for (bool accumulate : {false, true})
    dense.gradients(sk::ops::DenseGradients<float>{
        .batch = 5, .x = x.data(), .dy = y.data(), .dw = dw.data(), .db = db.data(), .accumulate = accumulate});
  CHECK(plans() == before);
}
TEST_CASE("Threads have handles and plans of their own", "[cublas]") {
  OnDevice<float> a({1, 2, 3, 0, 4, 5, 6, 0}), b(16, 1.0f), d(8, 0.0f);
  std::thread([&] {
    CHECK(plans() == 0);
    CHECK(cublas::multiply(product(a, b, d)));
    sk::cuda::synchronize(sk::Cuda{0});
  }).join();
  CHECK(d.values() == std::vector<float>{6, 6, 6, 6, 15, 15, 15, 15});
}
TEST_CASE("While the workspace is sealed, plans take what there is", "[cublas]") {
  OnDevice<float> a({1, 2, 3, 0, 4, 5, 6, 0}), b(16, 1.0f), d(8, 0.0f);
  cublas::Product p = product(a, b, d);
  p.alpha = 2;
  p.m = 1;
  const std::size_t size = sk::cuda::workspace().size();
  sk::cuda::workspace().seal();
  CHECK(cublas::multiply(p));
  sk::cuda::workspace().seal(false);
  CHECK(sk::cuda::workspace().size() == size);
  CHECK(d.values() == std::vector<float>{12, 12, 12, 12, 0, 0, 0, 0});
}
TEST_CASE("What the library has no kernel for", "[cublas]") {
  OnDevice<double> a({1, 2, 3, 4, 5, 6}), b(12, 1.0), d(8, 0.0), bias(4, 1.0);
  cublas::Product p{.m = 2, .n = 4, .k = 3, .a = a.data(), .b = b.data(), .d = d.data(), .lda = 3, .ldb = 4, .ldd = 4};
  p.type = CUDA_R_16BF;
  p.result = CUDA_R_64F;
  CHECK_THROWS_AS(cublas::multiply(p), sk::DeviceError);
  CHECK_THROWS_WITH(
      cublas::multiply(p),
      Catch::Contains(" of (2, 3) x (3, 4), bf16 to double, rows 3, 4, 4 apart on Cuda 0"));  // whichever call refuses first
  p.epilogue = cublas::Epilogue::relu_bias;
  p.vector = bias.data();
  const std::size_t before = sk::cuda::choices().detours().size();
  CHECK_FALSE(cublas::prepare(p));
  CHECK_FALSE(cublas::multiply(p));
  REQUIRE(sk::cuda::choices().detours().size() == before + 1);
  CHECK_THAT(sk::cuda::choices().detours().back(),
             Catch::Contains("cuBLASLt's product of (2, 3) x (3, 4), bf16 to double, with bias and ReLU") &&
                 Catch::Contains(", a kernel behind the product does that"));
}
TEST_CASE("A product says what it is", "[cublas]") {
  cublas::Product p{.ta = sk::ops::Transpose::yes, .m = 84, .n = 10, .k = 128, .lda = 96, .ldb = 16, .ldd = 16};
  p.epilogue = cublas::Epilogue::sums;
  p.tf32 = true;
  CHECK(p.text() == "of (84, 128)^T x (128, 10), float by TF32, with sums of columns, rows 96, 16, 16 apart");
  CHECK_THROWS_WITH(cublas::check(CUBLAS_STATUS_EXECUTION_FAILED, "cublasLtMatmul", [&] { return p.text(); }),
                    Catch::Contains("cublasLtMatmul of (84, 128)^T") && Catch::Contains("CUBLAS_STATUS_EXECUTION_FAILED"));
}
TEST_CASE("The alignment that a plan is made for", "[cublas]") {
  const auto at = [](std::uintptr_t a) { return cublas::detail::alignment(reinterpret_cast<const void*>(a)); };
  CHECK((at(0) == 16 && at(256) == 256 && at(128) == 128 && at(16) == 16 && at(8) == 8 && at(260) == 4 && at(1) == 1));
  CHECK(cublas::detail::alignment(reinterpret_cast<const void*>(std::uintptr_t{256}), 16) == 16);
  OnDevice<float> a(64 + 16, 1.0f), b(64, 1.0f), d(64, 0.0f);
  cublas::Product p{.m = 4, .n = 8, .k = 8, .a = a.data(), .b = b.data(), .d = d.data(), .lda = 8, .ldb = 8, .ldd = 8};
  cublas::Product moved = p;
  moved.a = a.data() + 16;
  CHECK_FALSE(cublas::detail::key_of(p) == cublas::detail::key_of(moved));  // 256 and 64 bytes
  p.most_alignment = moved.most_alignment = 16;
  CHECK(cublas::detail::key_of(p) == cublas::detail::key_of(moved));
}
