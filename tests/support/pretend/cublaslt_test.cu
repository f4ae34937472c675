// SPDX-License-Identifier: Apache-2.0
// The pretend cuBLASLt: column-major products, epilogues, and the refusals of the real one.
#include <cublasLt.h>

#include <catch2/catch.hpp>
#include <skein/device/cuda/launch.hpp>
#include <vector>

namespace sk = skein;

namespace {

sk::Arena<float, sk::Cuda> on_device(const std::vector<float>& x) {
  sk::Arena<float, sk::Cuda> there(x.size(), sk::Cuda{0});
  sk::Memory<sk::Cuda>::from_host(there.data(), x.data(), x.size() * sizeof(float));
  return there;
}
std::vector<float> values(const sk::Arena<float, sk::Cuda>& there) {
  std::vector<float> x(there.size());
  sk::Memory<sk::Cuda>::to_host(x.data(), there.data(), x.size() * sizeof(float));
  return x;
}

/// D (2 x 2) = A (2 x 3) B (3 x 2), with an epilogue. The layouts are settings of the test.
struct Product {
  cublasLtHandle_t handle{};
  cublasLtMatmulDesc_t desc{};
  cublasLtMatrixLayout_t a{}, b{}, d{};
  Product() {
    REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 2, 3, 2) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 3, 2, 3) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 2, 2, 2) == CUBLAS_STATUS_SUCCESS);
  }
  Product(const Product&) = delete;
  ~Product() {
    cublasLtMatrixLayoutDestroy(a), cublasLtMatrixLayoutDestroy(b), cublasLtMatrixLayoutDestroy(d);
    cublasLtMatmulDescDestroy(desc);
    cublasLtDestroy(handle);
  }
  template <class T> cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, T value) {
    return cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value);
  }
  cublasStatus_t run(const void* A, const void* B, void* D) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle, desc, &one, A, a, B, b, &zero, D, d, D, d, nullptr, nullptr, 0, sk::cuda::stream());
  }
};

}  // namespace

TEST_CASE("pretend cuBLASLt: a column-major product, with a bias for each row, ReLU and its mask, and the sums of a gradient") {
  Product p;
  const auto A = on_device({1, 4, 2, 5, 3, 6}), B = on_device({1, 0, -1, -2, 1, 0});  // columns
  auto D = on_device({0, 0, 0, 0}), bias = on_device({3, -1}), mask = on_device(std::vector<float>(8));
  REQUIRE(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_SUCCESS);
  CHECK(values(D) == std::vector<float>{-2, -2, 0, -3});
  REQUIRE(p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_AUX_BIAS) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(p.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(bias.data())) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(mask.data())) == CUBLAS_STATUS_SUCCESS);
  CHECK(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_INVALID_VALUE);  // the mask's leading dimension is missing
  REQUIRE(p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{128}) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_SUCCESS);
  CHECK(values(D) == std::vector<float>{1, 0, 3, 0});
  REQUIRE(p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DRELU_BGRAD) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_SUCCESS);
  CHECK(values(D) == std::vector<float>{-2, 0, 0, 0});
  CHECK(values(bias) == std::vector<float>{-2, 0});
}

TEST_CASE("pretend cuBLASLt: what the real one refuses is refused") {
  Product p;
  const auto A = on_device({1, 4, 2, 5, 3, 6}), B = on_device({1, 0, -1, -2, 1, 0});
  auto D = on_device({0, 0, 0, 0});
  const auto layout = [](cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    REQUIRE(cublasLtMatrixLayoutSetAttribute(l, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS);
  };
  layout(p.a, CUBLASLT_MATRIX_LAYOUT_LD, std::int64_t{1});
  CHECK(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_INVALID_VALUE);
  layout(p.a, CUBLASLT_MATRIX_LAYOUT_LD, std::int64_t{2});
  layout(p.b, CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_16F);
  CHECK(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_NOT_SUPPORTED);
  layout(p.b, CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_32F);
  layout(p.b, CUBLASLT_MATRIX_LAYOUT_ROWS, std::uint64_t{2});
  CHECK(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_INVALID_VALUE);
  layout(p.b, CUBLASLT_MATRIX_LAYOUT_ROWS, std::uint64_t{3});
  layout(p.d, CUBLASLT_MATRIX_LAYOUT_ORDER, std::int32_t{CUBLASLT_ORDER_ROW});
  REQUIRE(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_SUCCESS);
  CHECK(values(D) == std::vector<float>{-2, 0, -2, -3});
  REQUIRE(p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU) == CUBLAS_STATUS_SUCCESS);
  CHECK(p.run(A.data(), B.data(), D.data()) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::int64_t{1}) == CUBLAS_STATUS_INVALID_VALUE);  // four bytes, not eight
}

TEST_CASE("pretend cuBLASLt: an algorithm takes operands that are aligned as it was asked for") {
  Product p;
  auto A = on_device(std::vector<float>(10, 1.0f)), B = on_device(std::vector<float>(6, 1.0f));
  auto D = on_device({0, 0, 0, 0});
  cublasLtMatmulPreference_t preference{};
  REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
  for (const std::uint32_t least : {256u, 4u}) {
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES})
      REQUIRE(cublasLtMatmulPreferenceSetAttribute(preference, which, &least, sizeof least) == CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    REQUIRE(cublasLtMatmulAlgoGetHeuristic(p.handle, p.desc, p.a, p.b, p.d, p.d, preference, 1, &result, &found) ==
            CUBLAS_STATUS_SUCCESS);
    const auto run = [&](const float* a) {
      const float one = 1, zero = 0;
      return cublasLtMatmul(p.handle, p.desc, &one, a, p.a, B.data(), p.b, &zero, D.data(), p.d, D.data(), p.d, &result.algo,
                            nullptr, 0, sk::cuda::stream());
    };
    CHECK(run(A.data()) == CUBLAS_STATUS_SUCCESS);
    CHECK(run(A.data() + 1) == (least == 4 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE));
  }
  cublasLtMatmulPreferenceDestroy(preference);
  CHECK(values(D) == std::vector<float>{3, 3, 3, 3});
}
