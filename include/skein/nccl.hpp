// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each: NcclComm, and spawn on the GPUs of one process. Includes skein/cuda.hpp; compile with nvcc, link NCCL
// (the target skein::nccl).
#pragma once
#include "cuda.hpp"

#include "comm/nccl/nccl_comm.hpp"
#include "comm/nccl/spawn.hpp"
