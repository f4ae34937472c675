// SPDX-License-Identifier: Apache-2.0
// What tests ask of the pretend NCCL (support/pretend/nccl.cpp) alone. A header, since a file that declares extern "C" itself
// cannot be joined with others in a namespace.
#pragma once

#if defined(SKEIN_CUDA_ON_HOST)
/// The next n calls of ncclCommSplit that do not block fail in the background, and write their handle afterwards all the
/// same.
extern "C" void skein_pretend_nccl_fail_splits(int n);
#endif
