// SPDX-License-Identifier: Apache-2.0
// Values of the libraries' data types as doubles, for the pretend libraries' plain loops.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace pretend {

inline std::size_t bytes_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_64F:
    case CUDA_R_64I:
      return 8;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_8I:
    case CUDA_R_8U:
      return 1;
    default:
      return 0;
  }
}

inline double load(const void* p, cudaDataType_t type, long at) {
  switch (type) {
    case CUDA_R_64F:
      return static_cast<const double*>(p)[at];
    case CUDA_R_32F:
      return static_cast<const float*>(p)[at];
    case CUDA_R_16F:
      return __half2float(static_cast<const __half*>(p)[at]);
    case CUDA_R_16BF:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[at]);
    case CUDA_R_32I:
      return static_cast<const std::int32_t*>(p)[at];
    case CUDA_R_64I:
      return static_cast<double>(static_cast<const std::int64_t*>(p)[at]);
    case CUDA_R_8I:
      return static_cast<const std::int8_t*>(p)[at];
    case CUDA_R_8U:
      return static_cast<const std::uint8_t*>(p)[at];
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

inline void store(void* p, cudaDataType_t type, long at, double value) {
  switch (type) {
    case CUDA_R_64F:
      static_cast<double*>(p)[at] = value;
      break;
    case CUDA_R_32F:
      static_cast<float*>(p)[at] = static_cast<float>(value);
      break;
    case CUDA_R_16F:
      static_cast<__half*>(p)[at] = __float2half_rn(static_cast<float>(value));
      break;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(p)[at] = __float2bfloat16_rn(static_cast<float>(value));
      break;
    case CUDA_R_32I:
      static_cast<std::int32_t*>(p)[at] = static_cast<std::int32_t>(value);
      break;
    case CUDA_R_64I:
      static_cast<std::int64_t*>(p)[at] = static_cast<std::int64_t>(value);
      break;
    case CUDA_R_8I:
      static_cast<std::int8_t*>(p)[at] = static_cast<std::int8_t>(value);
      break;
    case CUDA_R_8U:
      static_cast<std::uint8_t*>(p)[at] = static_cast<std::uint8_t>(value);
      break;
    default:
      break;
  }
}

/// As tensor cores read a float in TF32: ten bits of mantissa, rounded to nearest.
inline double as_tf32(double value) {
  const float f = static_cast<float>(value);
  if (!std::isfinite(f)) return f;
  const auto bits = std::bit_cast<std::uint32_t>(f);
  return std::bit_cast<float>((bits + 0xFFFu + ((bits >> 13) & 1u)) & ~0x1FFFu);
}

/// What a kernel writes into its workspace: nothing that anybody could use.
inline void spoil(void* workspace, std::size_t bytes) {
  auto* p = static_cast<unsigned char*>(workspace);
  for (std::size_t i = 0; i < bytes; ++i) p[i] = 0xFF;
}

}  // namespace pretend
