// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over rows by cuDNN: a row is the channels of one sample, its pitch the stride of samples. Gaps are
// neither read nor written. All types; rows by the gigabyte go in pieces, since cuDNN's extents are ints.
#pragma once
#include "../row_softmax.hpp"
#include "cudnn.hpp"

namespace skein::inline SKEIN_ABI::ops {

template <> struct RowSoftmaxKernels<Cuda> {
  static void prepare() { (void)cudnn::handle(); }
  template <bool Log, class Scalar> static void forward(long rows, long n, long pitch, const Scalar* x, Scalar* y) {
    constexpr cudnnDataType_t type = cudnn::type_of<Scalar>;
    in_pieces(type, rows, n, pitch, [&](const cudnn::TensorDescriptor& matrix, long at, long count) {
      cudnn::check(cudnnSoftmaxForward(cudnn::handle(), algorithm<Log>, CUDNN_SOFTMAX_MODE_CHANNEL, cudnn::one.as(type),
                                       matrix.get(), x + at, cudnn::zero.as(type), matrix.get(), y + at),
                   "cudnnSoftmaxForward", [&] {
                     return "of " + cudnn::shape({count, n});
                   });
    });
  }
  template <bool Log, class Scalar>
  static void backward(long rows, long n, long pitch, const Scalar* y, const Scalar* dy, Scalar* dx) {
    constexpr cudnnDataType_t type = cudnn::type_of<Scalar>;
    in_pieces(type, rows, n, pitch, [&](const cudnn::TensorDescriptor& matrix, long at, long count) {
      cudnn::check(cudnnSoftmaxBackward(cudnn::handle(), algorithm<Log>, CUDNN_SOFTMAX_MODE_CHANNEL, cudnn::one.as(type),
                                        matrix.get(), y + at, matrix.get(), dy + at, cudnn::zero.as(type), matrix.get(), dx + at),
                   "cudnnSoftmaxBackward", [&] {
                     return "of " + cudnn::shape({count, n});
                   });
    });
  }

 private:
  template <bool Log> static constexpr cudnnSoftmaxAlgorithm_t algorithm = Log ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;

  template <class Call> static void in_pieces(cudnnDataType_t type, long rows, long n, long pitch, Call call) {
    const long most = (1L << 30) / (pitch > 0 ? pitch : 1) > 0 ? (1L << 30) / pitch : 1;
    for (long row = 0; row < rows; row += most) {
      const long count = rows - row < most ? rows - row : most;
      cudnn::TensorDescriptor matrix;
      cudnn::check(cudnnSetTensor4dDescriptorEx(matrix.get(), type, static_cast<int>(count), static_cast<int>(n), 1, 1,
                                                static_cast<int>(pitch), 1, 1, 1),
                   "cudnnSetTensor4dDescriptorEx", [&] {
                     return text("of {}, pitch {}", cudnn::shape({count, n}), pitch);
                   });
      call(matrix, row * pitch, count);
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
