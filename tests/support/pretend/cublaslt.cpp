// SPDX-License-Identifier: Apache-2.0
// The pretend cuBLASLt: cublasLtMatmul by plain loops, summed in double precision, with the epilogues of training. It refuses
// what the documentation does not list: leading dimensions, types with epilogues, masks that are not multiples of 128 bits.
#include <cublasLt.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "pretend.hpp"
#include "types.hpp"

using namespace pretend;

namespace {

constexpr std::size_t wished_workspace = std::size_t{1} << 20;

struct Layout {
  cudaDataType_t type;
  std::int32_t order;
  std::uint64_t rows, cols;
  std::int64_t ld;
  std::int32_t batch;
  std::int64_t stride;

  long at(long row, long col) const { return order == CUBLASLT_ORDER_COL ? row + col * ld : row * ld + col; }
  std::int64_t least_ld() const { return static_cast<std::int64_t>(order == CUBLASLT_ORDER_COL ? rows : cols); }
  /// Bytes from the first to the last value.
  std::size_t extent() const {
    if (rows == 0 || cols == 0) return 0;
    const long last = at(static_cast<long>(rows) - 1, static_cast<long>(cols) - 1) + (batch - 1) * stride;
    return static_cast<std::size_t>(last + 1) * bytes_of(type);
  }
};
struct Desc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t pointer_mode, trans_a, trans_b, trans_c;
  std::uint32_t epilogue;
  void* bias;
  std::int64_t bias_stride;
  void* aux;
  std::int64_t aux_ld, aux_stride;
  std::int32_t aux_type, bias_type;
};
struct Preference {
  std::uint64_t workspace;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C and D
};
static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) && sizeof(Desc) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));

const Layout* layout(cublasLtMatrixLayout_t p) { return reinterpret_cast<const Layout*>(p); }
const Desc* desc(cublasLtMatmulDesc_t p) { return reinterpret_cast<const Desc*>(p); }

bool has(std::uint32_t epilogue, std::uint32_t bits) { return (epilogue & bits) == bits; }
bool is_mask(std::uint32_t e) {
  return e == CUBLASLT_EPILOGUE_RELU_AUX || e == CUBLASLT_EPILOGUE_RELU_AUX_BIAS || has(e, CUBLASLT_EPILOGUE_DRELU);
}
bool has_aux(std::uint32_t e) { return (e & 128u) != 0; }
bool known_epilogue(std::uint32_t e) {
  switch (e) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_AUX:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return true;
    default:
      return false;
  }
}

cublasStatus_t refuse(cublasStatus_t status, const std::string& why) {
  complain("cublasLtMatmul: " + why);
  return status;
}

/// Whether the compute, scale and matrix types go together, as the table of cublasLtMatmul lists them.
bool types_fit(const Desc& d, const Layout& a, const Layout& b, const Layout& c, const Layout& out) {
  if (a.type != b.type || c.type != out.type) return false;
  switch (d.compute) {
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return d.scale == CUDA_R_64F && a.type == CUDA_R_64F && c.type == CUDA_R_64F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      if (d.scale != CUDA_R_32F) return false;
      if (a.type == CUDA_R_32F) return c.type == CUDA_R_32F;
      return (a.type == CUDA_R_16F || a.type == CUDA_R_16BF) && (c.type == a.type || c.type == CUDA_R_32F);
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return d.scale == CUDA_R_32F && a.type == CUDA_R_32F && c.type == CUDA_R_32F;
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return d.scale == CUDA_R_16F && a.type == CUDA_R_16F && c.type == CUDA_R_16F;
    default:
      return false;
  }
}

/// The checks that need no memory; CUBLAS_STATUS_SUCCESS where the product can be had.
cublasStatus_t check(const Desc& d, const Layout& a, const Layout& b, const Layout& c, const Layout& out) {
  const bool ta = d.trans_a != CUBLAS_OP_N, tb = d.trans_b != CUBLAS_OP_N;
  const std::uint64_t m = ta ? a.cols : a.rows, ka = ta ? a.rows : a.cols, kb = tb ? b.cols : b.rows, n = tb ? b.rows : b.cols;
  const auto shape = [](const Layout& l) {
    return std::to_string(l.rows) + "x" + std::to_string(l.cols) + (l.order == CUBLASLT_ORDER_ROW ? " row-major" : "") + " ld " +
           std::to_string(l.ld);
  };
  const std::string all =
      "A " + shape(a) + (ta ? "^T" : "") + ", B " + shape(b) + (tb ? "^T" : "") + ", C " + shape(c) + ", D " + shape(out);
  if (m == 0 || n == 0 || ka == 0) return refuse(CUBLAS_STATUS_INVALID_VALUE, "empty matrices: " + all);
  if (ka != kb || m != out.rows || n != out.cols || c.rows != out.rows || c.cols != out.cols)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the shapes do not fit: " + all);
  for (const Layout* l : {&a, &b, &c, &out}) {
    if (l->ld < l->least_ld()) return refuse(CUBLAS_STATUS_INVALID_VALUE, "a leading dimension is too small: " + all);
    if (l->order != CUBLASLT_ORDER_COL && l->order != CUBLASLT_ORDER_ROW)
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "this order is not pretended");
    if (l->batch != out.batch) return refuse(CUBLAS_STATUS_INVALID_VALUE, "the batch counts differ");
  }
  if (c.order != out.order) return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "C and D have different orders");
  if (d.trans_c != CUBLAS_OP_N) return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "a transposed C");
  if (!types_fit(d, a, b, c, out)) return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "this combination of types is not in the table");
  if (d.pointer_mode != CUBLASLT_POINTER_MODE_HOST && d.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE)
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "vectors as alpha are not pretended");
  const std::uint32_t e = d.epilogue;
  if (!known_epilogue(e)) return refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no epilogue " + std::to_string(e));
  if (e != CUBLASLT_EPILOGUE_DEFAULT) {
    if (out.type == CUDA_R_64F || d.compute == CUBLAS_COMPUTE_16F)
      return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an epilogue with these types");
    if (out.order != CUBLASLT_ORDER_COL) return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an epilogue on a row-major D");
  }
  if (has_aux(e)) {
    const std::int64_t unit = is_mask(e) ? 128 : 8;
    if (d.aux_ld < static_cast<std::int64_t>(out.rows) || d.aux_ld % unit != 0)
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "EPILOGUE_AUX_LD " + std::to_string(d.aux_ld) + " is no multiple of " +
                                                     std::to_string(unit) + " over the rows of D");
    if (d.aux_stride % unit != 0) return refuse(CUBLAS_STATUS_INVALID_VALUE, "EPILOGUE_AUX_BATCH_STRIDE");
  }
  if (d.bias_type != -1 && d.bias_type != static_cast<std::int32_t>(out.type))
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "BIAS_DATA_TYPE is not that of D");
  return CUBLAS_STATUS_SUCCESS;
}

double gelu(double x) {
  const double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
  return 0.5 * x * (1 + t);
}
double gelu_derivative(double x) {
  const double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x), t = std::tanh(inner);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

double as_compute(const Desc& d, double x) {
  switch (d.compute) {
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return as_tf32(x);
    case CUBLAS_COMPUTE_32F_FAST_16BF:
      return __bfloat162float(__float2bfloat16_rn(static_cast<float>(x)));
    case CUBLAS_COMPUTE_32F_FAST_16F:
      return __half2float(__float2half_rn(static_cast<float>(x)));
    default:
      return x;
  }
}

struct Call {
  Desc d;
  Layout la, lb, lc, ld;
  const void *a, *b, *c;
  void* out;
  double alpha = 0, beta = 0;
  const void *alpha_at = nullptr, *beta_at = nullptr;  // of the device

  void run() const {
    const double scale = alpha_at ? load(alpha_at, d.scale, 0) : alpha, keep = beta_at ? load(beta_at, d.scale, 0) : beta;
    for (int batch = 0; batch < ld.batch; ++batch) one(batch, scale, keep);
  }
  void one(int batch, double scale, double keep) const {
    const long m = static_cast<long>(ld.rows), n = static_cast<long>(ld.cols);
    const bool ta = d.trans_a != CUBLAS_OP_N, tb = d.trans_b != CUBLAS_OP_N;
    const long k = static_cast<long>(ta ? la.rows : la.cols);
    std::vector<double> left(static_cast<std::size_t>(m * k)), right(static_cast<std::size_t>(k * n)),
        sum(static_cast<std::size_t>(n));
    for (long i = 0; i < m; ++i)
      for (long p = 0; p < k; ++p)
        left[static_cast<std::size_t>(i * k + p)] =
            as_compute(d, load(a, la.type, (ta ? la.at(p, i) : la.at(i, p)) + batch * la.stride));
    for (long p = 0; p < k; ++p)
      for (long j = 0; j < n; ++j)
        right[static_cast<std::size_t>(p * n + j)] =
            as_compute(d, load(b, lb.type, (tb ? lb.at(j, p) : lb.at(p, j)) + batch * lb.stride));
    const std::uint32_t e = d.epilogue;
    if (e == CUBLASLT_EPILOGUE_BGRADA)
      for (long i = 0; i < m; ++i) {
        double total = 0;
        for (long p = 0; p < k; ++p) total += left[static_cast<std::size_t>(i * k + p)];
        store(d.bias, ld.type, i + batch * d.bias_stride, total);
      }
    if (e == CUBLASLT_EPILOGUE_BGRADB)
      for (long j = 0; j < n; ++j) {
        double total = 0;
        for (long p = 0; p < k; ++p) total += right[static_cast<std::size_t>(p * n + j)];
        store(d.bias, ld.type, j + batch * d.bias_stride, total);
      }
    const cudaDataType_t aux_type = d.aux_type == -1 ? ld.type : static_cast<cudaDataType_t>(d.aux_type);
    for (long i = 0; i < m; ++i) {
      for (long j = 0; j < n; ++j) sum[static_cast<std::size_t>(j)] = 0;
      for (long p = 0; p < k; ++p) {
        const double factor = left[static_cast<std::size_t>(i * k + p)];
        const double* row = right.data() + p * n;
        for (long j = 0; j < n; ++j) sum[static_cast<std::size_t>(j)] += factor * row[j];
      }
      double row_sum = 0;
      for (long j = 0; j < n; ++j) {
        double x = scale * sum[static_cast<std::size_t>(j)];
        const long at = ld.at(i, j) + batch * ld.stride;
        if (keep != 0) x += keep * load(c, lc.type, lc.at(i, j) + batch * lc.stride);
        const long aux_at = i + j * d.aux_ld + batch * d.aux_stride;
        if (e != CUBLASLT_EPILOGUE_BGRADA && e != CUBLASLT_EPILOGUE_BGRADB && (e & CUBLASLT_EPILOGUE_BIAS))
          x += load(d.bias, ld.type, i + batch * d.bias_stride);
        if (has(e, CUBLASLT_EPILOGUE_DRELU)) {
          const bool on = static_cast<const unsigned char*>(d.aux)[aux_at / 8] >> (aux_at % 8) & 1;
          x = on ? x : 0;
        } else if (has(e, CUBLASLT_EPILOGUE_DGELU)) {
          x *= gelu_derivative(load(d.aux, aux_type, aux_at));
        } else if (e & CUBLASLT_EPILOGUE_RELU) {
          if (has_aux(e)) {
            auto* byte = static_cast<unsigned char*>(d.aux) + aux_at / 8;
            const auto one = static_cast<unsigned char>(1u << (aux_at % 8));
            *byte = static_cast<unsigned char>(x > 0 ? *byte | one : *byte & ~one);
          }
          x = x > 0 ? x : 0;  // of a NaN too, as the real one
        } else if (e & CUBLASLT_EPILOGUE_GELU) {
          if (has_aux(e)) store(d.aux, aux_type, aux_at, x);
          x = gelu(x);
        }
        row_sum += x;
        store(out, ld.type, at, x);
      }
      if (e == CUBLASLT_EPILOGUE_DRELU_BGRAD || e == CUBLASLT_EPILOGUE_DGELU_BGRAD)
        store(d.bias, ld.type, i + batch * d.bias_stride, row_sum);
    }
  }
};

template <class T> cublasStatus_t put(T& member, const void* from, std::size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&member, from, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

struct Handle {
  int device;
};

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  if (device_count() == 0 || unsafe_call() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(new Handle{current_device()});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<Handle*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU";
    default:
      return "an internal operation failed";
  }
}
const char* cublasGetStatusName(cublasStatus_t status) { return cublasLtGetStatusName(status); }
const char* cublasGetStatusString(cublasStatus_t status) { return cublasLtGetStatusString(status); }

// ---- matrices
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to, size_t size, cudaDataType type, uint64_t rows,
                                                 uint64_t cols, int64_t ld) {
  if (!to || size < sizeof(Layout)) return CUBLAS_STATUS_INVALID_VALUE;
  new (to) Layout{type, CUBLASLT_ORDER_COL, rows, cols, ld, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType type, uint64_t rows, uint64_t cols,
                                          int64_t ld) {
  *to = new cublasLtMatrixLayoutOpaque_t;
  return cublasLtMatrixLayoutInit_internal(*to, sizeof **to, type, rows, cols, ld);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(const cublasLtMatrixLayout_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t p, cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  auto& l = *reinterpret_cast<Layout*>(p);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return put(l.type, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return put(l.order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return put(l.rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return put(l.cols, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return put(l.ld, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return put(l.batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return put(l.stride, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// ---- operations
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, size_t size, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  if (!to || size < sizeof(Desc)) return CUBLAS_STATUS_INVALID_VALUE;
  new (to) Desc{compute,
                scale,
                CUBLASLT_POINTER_MODE_HOST,
                CUBLAS_OP_N,
                CUBLAS_OP_N,
                CUBLAS_OP_N,
                CUBLASLT_EPILOGUE_DEFAULT,
                nullptr,
                0,
                nullptr,
                0,
                0,
                -1,
                -1};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t compute, cudaDataType_t scale) {
  *to = new cublasLtMatmulDescOpaque_t;
  return cublasLtMatmulDescInit_internal(*to, sizeof **to, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(const cublasLtMatmulDesc_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p, cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  auto& d = *reinterpret_cast<Desc*>(p);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return put(d.compute, value, bytes);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return put(d.scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return put(d.pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return put(d.trans_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return put(d.trans_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSC:
      return put(d.trans_c, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return put(d.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return put(d.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return put(d.bias_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return put(d.bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return put(d.aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return put(d.aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      return put(d.aux_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return put(d.aux_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return bytes == 4 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

// ---- algorithms
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t to, size_t size) {
  if (!to || size < sizeof(Preference)) return CUBLAS_STATUS_INVALID_VALUE;
  new (to) Preference{0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) {
  *to = new cublasLtMatmulPreferenceOpaque_t;
  return cublasLtMatmulPreferenceInit_internal(*to, sizeof **to);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(const cublasLtMatmulPreference_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  auto& preference = *reinterpret_cast<Preference*>(p);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return put(preference.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return put(preference.alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return put(preference.alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return put(preference.alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return put(preference.alignment[3], value, bytes);
    default:
      return bytes == 4 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  }
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (!handle || !d || !a || !b || !c || !out || !results || !found || wanted <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  const cublasStatus_t status = check(*desc(d), *layout(a), *layout(b), *layout(c), *layout(out));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const std::size_t most = preference ? reinterpret_cast<const Preference*>(preference)->workspace : 0;
  std::memset(results, 0, sizeof *results);
  results->state = CUBLAS_STATUS_SUCCESS;
  results->workspaceSize = most < wished_workspace ? 0 : wished_workspace;
  results->algo.data[0] = results->workspaceSize;
  results->algo.data[1] = 77;
  const Preference defaults{0};
  const Preference& asked = preference ? *reinterpret_cast<const Preference*>(preference) : defaults;
  for (int i = 0; i < 4; ++i) results->algo.data[2] |= std::uint64_t{asked.alignment[i]} << 16 * i;
  results->wavesCount = 1;
  *found = 1;
  if (wanted > 1) {  // in front, one that the check refuses
    results[1] = results[0];
    results[0].algo.data[1] = 78;
    *found = 2;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  if (!handle || !d || !a || !b || !c || !out || !algorithm || !result) return CUBLAS_STATUS_INVALID_VALUE;
  result->state = algorithm->data[1] == 77 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  result->workspaceSize = algorithm->data[0];
  return result->state;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t computeDesc, const void* alpha, const void* A,
                              cublasLtMatrixLayout_t Adesc, const void* B, cublasLtMatrixLayout_t Bdesc, const void* beta,
                              const void* C, cublasLtMatrixLayout_t Cdesc, void* D, cublasLtMatrixLayout_t Ddesc,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (!handle || !computeDesc || !alpha || !beta || !Adesc || !Bdesc || !Cdesc || !Ddesc) return CUBLAS_STATUS_INVALID_VALUE;
  Call call{*desc(computeDesc), *layout(Adesc), *layout(Bdesc), *layout(Cdesc), *layout(Ddesc), A, B, C, D};
  const Desc& d = call.d;
  const cublasStatus_t status = check(d, call.la, call.lb, call.lc, call.ld);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const int device = device_of(stream);
  if (reinterpret_cast<Handle*>(handle)->device != device)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the handle is another device's than the stream");
  if (d.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE) {
    if (!on_device(alpha, bytes_of(d.scale), device, "cublasLtMatmul: alpha") ||
        !on_device(beta, bytes_of(d.scale), device, "cublasLtMatmul: beta"))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    call.alpha_at = alpha, call.beta_at = beta;
  } else {
    if (place_of(alpha).kind == Place::device || place_of(beta).kind == Place::device)
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "alpha or beta is the device's, the pointer mode says the host");
    call.alpha = load(alpha, d.scale, 0), call.beta = load(beta, d.scale, 0);
  }
  if (C == D && (call.lc.ld != call.ld.ld || call.lc.stride != call.ld.stride))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "C and D are one, their layouts are not");
  bool fits = on_device(A, call.la.extent(), device, "cublasLtMatmul: A") &&
              on_device(B, call.lb.extent(), device, "cublasLtMatmul: B") &&
              on_device(D, call.ld.extent(), device, "cublasLtMatmul: D");
  if (call.beta_at || call.beta != 0) fits = fits && on_device(C, call.lc.extent(), device, "cublasLtMatmul: C");
  for (const auto& [p, l] : {std::pair{A, &call.la}, {B, &call.lb}, {static_cast<const void*>(D), &call.ld}})
    if (reinterpret_cast<std::uintptr_t>(p) % bytes_of(l->type) != 0)
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "a matrix is not aligned to its type");
  const std::uint32_t e = d.epilogue;
  const bool bgrad = e == CUBLASLT_EPILOGUE_DRELU_BGRAD || e == CUBLASLT_EPILOGUE_DGELU_BGRAD || e == CUBLASLT_EPILOGUE_BGRADA ||
                     e == CUBLASLT_EPILOGUE_BGRADB;
  const bool bias = !bgrad && e != CUBLASLT_EPILOGUE_DEFAULT && (e & CUBLASLT_EPILOGUE_BIAS);
  if (bgrad || bias) {
    if (!d.bias) return refuse(CUBLAS_STATUS_INVALID_VALUE, "the epilogue wants BIAS_POINTER");
    const std::uint64_t length = e == CUBLASLT_EPILOGUE_BGRADB ? call.ld.cols : call.ld.rows;
    fits = fits && on_device(d.bias,
                             static_cast<std::size_t>(static_cast<std::int64_t>(length) + (call.ld.batch - 1) * d.bias_stride) *
                                 bytes_of(call.ld.type),
                             device, "cublasLtMatmul: the bias");
  }
  if (has_aux(e)) {
    if (!d.aux) return refuse(CUBLAS_STATUS_INVALID_VALUE, "the epilogue wants EPILOGUE_AUX_POINTER");
    if (reinterpret_cast<std::uintptr_t>(d.aux) % 16 != 0)
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "EPILOGUE_AUX_POINTER is not 16-byte aligned");
    const auto values = static_cast<std::size_t>((static_cast<std::int64_t>(call.ld.cols) - 1) * d.aux_ld +
                                                 static_cast<std::int64_t>(call.ld.rows) + (call.ld.batch - 1) * d.aux_stride);
    const cudaDataType_t type = d.aux_type == -1 ? call.ld.type : static_cast<cudaDataType_t>(d.aux_type);
    fits = fits && on_device(d.aux, is_mask(e) ? (values + 7) / 8 : values * bytes_of(type), device,
                             "cublasLtMatmul: the auxiliary buffer");
  }
  std::size_t wished = 0;
  if (algo) {
    if (algo->data[1] != 77) return refuse(CUBLAS_STATUS_INVALID_VALUE, "the algorithm is none of the heuristic's");
    const void* const operands[] = {A, B, C, D};
    for (int i = 0; i < 4; ++i)
      if (const auto least = static_cast<std::uintptr_t>(algo->data[2] >> 16 * i & 0xffff);
          least == 0 || reinterpret_cast<std::uintptr_t>(operands[i]) % least != 0)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, std::string(1, "ABCD"[i]) + " is not aligned to the " + std::to_string(least) +
                                                       " bytes that the algorithm was asked for with");
    wished = algo->data[0];
    if (wished && (!workspace || workspace_bytes < wished))
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "the workspace is smaller than the algorithm's");
    if (wished && reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "the workspace is not 16-byte aligned");
    fits = fits && on_device(workspace, wished, device, "cublasLtMatmul: the workspace");
  }
  if (!fits) {
    fail_device(device, cudaErrorIllegalAddress);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const cudaError_t given = submit(stream, {[call, workspace, wished] {
                                              spoil(workspace, wished);
                                              call.run();
                                            },
                                            bit(device), "cublasLtMatmul"});
  return given == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
