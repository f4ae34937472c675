// SPDX-License-Identifier: Apache-2.0
// What the two halves of the pretend cuDNN share: descriptors, values of any type, convolution in plain loops.
#pragma once
#include <cudnn.h>

#include <cstring>

#include <skein/core/half.hpp>

#include "pretend.hpp"

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};

namespace pretend {

/// Notes what was wrong, for cudnnGetLastErrorString.
cudnnStatus_t refuse(cudnnStatus_t status, const std::string& words);

inline std::size_t size_of(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return 4;
    case CUDNN_DATA_DOUBLE:
      return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    default:
      return 0;
  }
}
inline double load(cudnnDataType_t type, const void* p, std::int64_t i) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return static_cast<double>(static_cast<const float*>(p)[i]);
    case CUDNN_DATA_DOUBLE:
      return static_cast<const double*>(p)[i];
    case CUDNN_DATA_HALF:
      return static_cast<double>(static_cast<float>(static_cast<const skein::fp16*>(p)[i]));
    default:
      return static_cast<double>(static_cast<float>(static_cast<const skein::bf16*>(p)[i]));
  }
}
inline void store(cudnnDataType_t type, void* p, std::int64_t i, double value) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      static_cast<float*>(p)[i] = static_cast<float>(value);
      break;
    case CUDNN_DATA_DOUBLE:
      static_cast<double*>(p)[i] = value;
      break;
    case CUDNN_DATA_HALF:
      static_cast<skein::fp16*>(p)[i] = skein::fp16(value);
      break;
    default:
      static_cast<skein::bf16*>(p)[i] = skein::bf16(value);
      break;
  }
}
/// A blend factor: a double for doubles, a float for all else.
inline double factor(cudnnDataType_t type, const void* p) {
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(p) : static_cast<double>(*static_cast<const float*>(p));
}

/// A tensor or filter: extents in cuDNN's order (n, c, h, w), strides in values.
struct Tensor {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t extent[4] = {}, stride[4] = {};

  std::int64_t count() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return n * stride[0] + c * stride[1] + h * stride[2] + w * stride[3];
  }
  std::size_t bytes() const {
    return static_cast<std::size_t>(at(extent[0] - 1, extent[1] - 1, extent[2] - 1, extent[3] - 1) + 1) * size_of(type);
  }
  bool channels_last() const {
    return stride[1] == 1 && stride[3] == extent[1] && stride[2] == extent[3] * extent[1] &&
           stride[0] == extent[2] * extent[3] * extent[1];
  }
  bool same_extents(const Tensor& o) const { return std::memcmp(extent, o.extent, sizeof extent) == 0; }
  bool same(const Tensor& o) const {
    return type == o.type && same_extents(o) && std::memcmp(stride, o.stride, sizeof stride) == 0;
  }
};

struct Window {
  std::int64_t padding[2] = {}, stride[2] = {1, 1}, dilation[2] = {1, 1}, groups = 1;
};

/// The groups of a convolution are those that the extents imply; nothing where they do not fit each other.
bool fits(const Tensor& x, const Tensor& filter, const Tensor& y, const Window& w);
/// visit(x's index, filter's index, y's index) for each product.
template <class Visit> void each_product(const Tensor& x, const Tensor& f, const Tensor& y, const Window& w, Visit visit) {
  const std::int64_t in = f.extent[1], out = f.extent[0] / w.groups;
  for (std::int64_t n = 0; n < y.extent[0]; ++n)
    for (std::int64_t k = 0; k < y.extent[1]; ++k)
      for (std::int64_t i = 0; i < y.extent[2]; ++i)
        for (std::int64_t j = 0; j < y.extent[3]; ++j)
          for (std::int64_t r = 0; r < f.extent[2]; ++r)
            for (std::int64_t s = 0; s < f.extent[3]; ++s) {
              const std::int64_t row = i * w.stride[0] + r * w.dilation[0] - w.padding[0],
                                 column = j * w.stride[1] + s * w.dilation[1] - w.padding[1];
              if (row < 0 || row >= x.extent[2] || column < 0 || column >= x.extent[3]) continue;
              for (std::int64_t c = 0; c < in; ++c)
                visit(x.at(n, k / out * in + c, row, column), f.at(k, c, r, s), y.at(n, k, i, j));
            }
}

/// A call on the handle's device and stream; run() when the stream comes to it.
cudnnStatus_t launch(cudnnHandle_t handle, const char* name, std::function<void()> run);
/// Whether the handle's device may touch so many bytes there.
bool reaches(cudnnHandle_t handle, const void* p, std::size_t bytes, const char* name);

}  // namespace pretend
