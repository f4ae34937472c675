// SPDX-License-Identifier: Apache-2.0
// The pretend cuSPARSE: SpMV and SpMM of CSR matrices by plain loops in double precision. It refuses what the documentation does
// not list: mixed index or value types, transposes, short workspaces, pointers of the host.
#include <cusparse.h>

#include <string>

#include "pretend.hpp"

using namespace pretend;

struct cusparseContext {
  int device;
  cudaStream_t stream;
};
struct cusparseSpMatDescr {
  long rows, columns, entries;
  const void *offsets, *indices, *values;
  cusparseIndexType_t offset_type, index_type;
  cudaDataType type;
};
struct cusparseDnVecDescr {
  long size;
  void* values;
  cudaDataType type;
};
struct cusparseDnMatDescr {
  long rows, columns, pitch;
  void* values;
  cudaDataType type;
  cusparseOrder_t order;
};

namespace {

constexpr std::size_t wished_workspace = 4096;

cusparseStatus_t refuse(cusparseStatus_t status, const std::string& why) {
  complain("cuSPARSE: " + why);
  return status;
}
bool real(cudaDataType t) { return t == CUDA_R_32F || t == CUDA_R_64F; }
std::size_t bytes_of(cudaDataType t) { return t == CUDA_R_64F ? 8 : 4; }
std::size_t bytes_of(cusparseIndexType_t t) { return t == CUSPARSE_INDEX_64I ? 8 : 4; }
long index_at(const void* p, cusparseIndexType_t t, long i) {
  return t == CUSPARSE_INDEX_64I ? static_cast<const std::int64_t*>(p)[i] : static_cast<const std::int32_t*>(p)[i];
}
double value_at(const void* p, cudaDataType t, long i) {
  return t == CUDA_R_64F ? static_cast<const double*>(p)[i] : static_cast<double>(static_cast<const float*>(p)[i]);
}
void put(void* p, cudaDataType t, long i, double x) {
  if (t == CUDA_R_64F) static_cast<double*>(p)[i] = x;
  else static_cast<float*>(p)[i] = static_cast<float>(x);
}

/// What SpMV and SpMM ask of the matrix and the types of a call.
cusparseStatus_t check_matrix(const cusparseSpMatDescr& a, cusparseOperation_t op, cudaDataType x, cudaDataType y,
                              cudaDataType compute) {
  if (op != CUSPARSE_OPERATION_NON_TRANSPOSE) return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, "transposes are not pretended");
  if (a.offset_type != a.index_type) return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, "offsets and columns of different index types");
  if (a.type != x || a.type != y || a.type != compute || !real(a.type))
    return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, "mixed types");
  return CUSPARSE_STATUS_SUCCESS;
}
bool reachable(const cusparseContext& c, const cusparseSpMatDescr& a) {
  return on_device(a.offsets, static_cast<std::size_t>(a.rows + 1) * bytes_of(a.offset_type), c.device, "cuSPARSE (offsets)") &&
         on_device(a.indices, static_cast<std::size_t>(a.entries) * bytes_of(a.index_type), c.device, "cuSPARSE (columns)") &&
         on_device(a.values, static_cast<std::size_t>(a.entries) * bytes_of(a.type), c.device, "cuSPARSE (values)");
}

}  // namespace

extern "C" {

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  if (unsafe_call() != cudaSuccess) return CUSPARSE_STATUS_NOT_INITIALIZED;
  *handle = new cusparseContext{current_device(), nullptr};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  delete handle;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  if (stream && device_of(stream) != handle->device)
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, "the stream is another device's than the handle");
  handle->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}
const char* cusparseGetErrorName(cusparseStatus_t status) {
  switch (status) {
    case CUSPARSE_STATUS_SUCCESS:
      return "CUSPARSE_STATUS_SUCCESS";
    case CUSPARSE_STATUS_NOT_INITIALIZED:
      return "CUSPARSE_STATUS_NOT_INITIALIZED";
    case CUSPARSE_STATUS_INVALID_VALUE:
      return "CUSPARSE_STATUS_INVALID_VALUE";
    case CUSPARSE_STATUS_NOT_SUPPORTED:
      return "CUSPARSE_STATUS_NOT_SUPPORTED";
    default:
      return "CUSPARSE_STATUS_EXECUTION_FAILED";
  }
}
const char* cusparseGetErrorString(cusparseStatus_t status) {
  switch (status) {
    case CUSPARSE_STATUS_SUCCESS:
      return "success";
    case CUSPARSE_STATUS_NOT_INITIALIZED:
      return "initialization error";
    case CUSPARSE_STATUS_INVALID_VALUE:
      return "invalid value";
    case CUSPARSE_STATUS_NOT_SUPPORTED:
      return "operation not supported";
    default:
      return "kernel launch failure";
  }
}

cusparseStatus_t cusparseCreateConstCsr(cusparseConstSpMatDescr_t* d, int64_t rows, int64_t columns, int64_t entries,
                                        const void* offsets, const void* indices, const void* values,
                                        cusparseIndexType_t offset_type, cusparseIndexType_t index_type, cusparseIndexBase_t base,
                                        cudaDataType type) {
  if (rows < 0 || columns < 0 || entries < 0 || base != CUSPARSE_INDEX_BASE_ZERO || !offsets)
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, "a CSR descriptor");
  *d = new cusparseSpMatDescr{rows, columns, entries, offsets, indices, values, offset_type, index_type, type};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t d) {
  delete d;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* d, int64_t size, void* values, cudaDataType type) {
  if (size < 0) return refuse(CUSPARSE_STATUS_INVALID_VALUE, "a vector of negative size");
  *d = new cusparseDnVecDescr{size, values, type};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstDnVec(cusparseConstDnVecDescr_t* d, int64_t size, const void* values, cudaDataType type) {
  cusparseDnVecDescr_t made = nullptr;
  const cusparseStatus_t status = cusparseCreateDnVec(&made, size, const_cast<void*>(values), type);
  *d = made;
  return status;
}
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t d) {
  delete d;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* d, int64_t rows, int64_t columns, int64_t pitch, void* values,
                                     cudaDataType type, cusparseOrder_t order) {
  if (rows < 0 || columns < 0 || pitch < (order == CUSPARSE_ORDER_ROW ? columns : rows))
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, "a leading dimension below the row");
  *d = new cusparseDnMatDescr{rows, columns, pitch, values, type, order};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* d, int64_t rows, int64_t columns, int64_t pitch,
                                          const void* values, cudaDataType type, cusparseOrder_t order) {
  cusparseDnMatDescr_t made = nullptr;
  const cusparseStatus_t status = cusparseCreateDnMat(&made, rows, columns, pitch, const_cast<void*>(values), type, order);
  *d = made;
  return status;
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t d) {
  delete d;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMV_bufferSize(cusparseHandle_t, cusparseOperation_t op, const void*, cusparseConstSpMatDescr_t a,
                                         cusparseConstDnVecDescr_t x, const void*, cusparseDnVecDescr_t y, cudaDataType compute,
                                         cusparseSpMVAlg_t, size_t* bytes) {
  *bytes = wished_workspace;
  return check_matrix(*a, op, x->type, y->type, compute);
}
cusparseStatus_t cusparseSpMV(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                              cusparseConstSpMatDescr_t matrix, cusparseConstDnVecDescr_t from, const void* beta,
                              cusparseDnVecDescr_t to, cudaDataType compute, cusparseSpMVAlg_t, void* buffer) {
  const cusparseSpMatDescr a = *matrix;
  const cusparseDnVecDescr x = *from, y = *to;
  if (const cusparseStatus_t status = check_matrix(a, op, x.type, y.type, compute); status != CUSPARSE_STATUS_SUCCESS)
    return status;
  if (x.size != a.columns || y.size != a.rows) return refuse(CUSPARSE_STATUS_INVALID_VALUE, "SpMV: sizes differ");
  const double scale = value_at(alpha, compute, 0), keep = value_at(beta, compute, 0);
  const bool fit = reachable(*handle, a) &&
                   on_device(x.values, static_cast<std::size_t>(x.size) * bytes_of(x.type), handle->device, "SpMV (x)") &&
                   on_device(y.values, static_cast<std::size_t>(y.size) * bytes_of(y.type), handle->device, "SpMV (y)") &&
                   on_device(buffer, wished_workspace, handle->device, "SpMV (workspace)");
  if (!fit) return CUSPARSE_STATUS_EXECUTION_FAILED;
  const auto run = [=] {
    for (long i = 0; i < a.rows; ++i) {
      double total = 0;
      for (long k = index_at(a.offsets, a.offset_type, i); k < index_at(a.offsets, a.offset_type, i + 1); ++k)
        total += value_at(a.values, a.type, k) * value_at(x.values, x.type, index_at(a.indices, a.index_type, k));
      put(y.values, y.type, i, scale * total + (keep == 0 ? 0 : keep * value_at(y.values, y.type, i)));
    }
  };
  return submit(handle->stream, {run, bit(handle->device), "cusparseSpMV"}) == cudaSuccess ? CUSPARSE_STATUS_SUCCESS
                                                                                           : CUSPARSE_STATUS_EXECUTION_FAILED;
}

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t, cusparseOperation_t op, cusparseOperation_t, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, const void*,
                                         cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpMMAlg_t, size_t* bytes) {
  *bytes = wished_workspace;
  return check_matrix(*a, op, b->type, c->type, compute);
}
cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t op, cusparseOperation_t op_b, const void* alpha,
                              cusparseConstSpMatDescr_t matrix, cusparseConstDnMatDescr_t from, const void* beta,
                              cusparseDnMatDescr_t to, cudaDataType compute, cusparseSpMMAlg_t, void* buffer) {
  const cusparseSpMatDescr a = *matrix;
  const cusparseDnMatDescr b = *from, c = *to;
  if (const cusparseStatus_t status = check_matrix(a, op, b.type, c.type, compute); status != CUSPARSE_STATUS_SUCCESS)
    return status;
  if (op_b != CUSPARSE_OPERATION_NON_TRANSPOSE || b.order != CUSPARSE_ORDER_ROW || c.order != CUSPARSE_ORDER_ROW)
    return refuse(CUSPARSE_STATUS_NOT_SUPPORTED, "SpMM of other than row-major matrices is not pretended");
  if (b.rows != a.columns || c.rows != a.rows || b.columns != c.columns)
    return refuse(CUSPARSE_STATUS_INVALID_VALUE, "SpMM: sizes differ");
  const double scale = value_at(alpha, compute, 0), keep = value_at(beta, compute, 0);
  const auto bytes = [](const cusparseDnMatDescr& m) {
    return m.rows == 0 ? 0 : static_cast<std::size_t>((m.rows - 1) * m.pitch + m.columns) * bytes_of(m.type);
  };
  const bool fit = reachable(*handle, a) && on_device(b.values, bytes(b), handle->device, "SpMM (B)") &&
                   on_device(c.values, bytes(c), handle->device, "SpMM (C)") &&
                   on_device(buffer, wished_workspace, handle->device, "SpMM (workspace)");
  if (!fit) return CUSPARSE_STATUS_EXECUTION_FAILED;
  const auto run = [=] {
    for (long i = 0; i < a.rows; ++i)
      for (long j = 0; j < c.columns; ++j) {
        double total = 0;
        for (long k = index_at(a.offsets, a.offset_type, i); k < index_at(a.offsets, a.offset_type, i + 1); ++k)
          total += value_at(a.values, a.type, k) * value_at(b.values, b.type, index_at(a.indices, a.index_type, k) * b.pitch + j);
        put(c.values, c.type, i * c.pitch + j,
            scale * total + (keep == 0 ? 0 : keep * value_at(c.values, c.type, i * c.pitch + j)));
      }
  };
  return submit(handle->stream, {run, bit(handle->device), "cusparseSpMM"}) == cudaSuccess ? CUSPARSE_STATUS_SUCCESS
                                                                                           : CUSPARSE_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
