// SPDX-License-Identifier: Apache-2.0
// Every status of NCCL is looked at here; what NCCL calls the scalars and reductions of this library.
#pragma once
#include <nccl.h>

#include "../../device/cuda/status.hpp"
#include "../collective_call.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// What a user can do about a status of NCCL; empty where nothing general can be said.
inline std::string hint_for(ncclResult_t status) {
  switch (status) {
    case ncclSystemError:
      return "NCCL_DEBUG=WARN prints why; NCCL_SOCKET_IFNAME chooses the network";
    case ncclRemoteError:
      return "another rank, or the network to it, has failed: see the other ranks' output";
    case ncclUnhandledCudaError:
      return "NCCL_DEBUG=WARN prints which call";
    default:
      return {};
  }
}

/// "ncclAllReduce (all_reduce(Sum) of 8 float): unhandled system error (3): ...".
inline std::string nccl_text(ncclResult_t status, const char* call, const std::string& details, ncclComm_t of = nullptr) {
  const char* words = ncclGetErrorString(status);
  const char* last = ncclGetLastError(of);
  std::string text = skein::text("{}{}: {} ({})", call, (details.empty() ? "" : " (" + details + ")"), (words ? words : "failed"),
                                 static_cast<int>(status));
  if (last && *last) text += ": " + std::string(last).substr(0, 300);
  const std::string hint = hint_for(status);
  return hint.empty() ? text : text + ": " + hint;
}

/// Throws CommError unless the call went well, or goes on in the background.
inline void check_nccl(ncclResult_t status, const char* call, const std::string& details = {},
                       SourceLocation where = SourceLocation::current()) {
  if (status != ncclSuccess && status != ncclInProgress) throw CommError(nccl_text(status, call, details), where);
}

/// What NCCL reduces: it has no 16-bit integers.
template <class T> concept NcclScalar = BuiltinScalar<T> && !(std::is_integral_v<T> && sizeof(T) == 2);

/// By an index into scalar_names.
inline ncclDataType_t nccl_type(std::uint8_t scalar) {
  switch (scalar) {
    case 1:
      return ncclFloat32;
    case 2:
      return ncclFloat64;
    case 3:
      return ncclInt8;
    case 4:
      return ncclUint8;
    case 7:
      return ncclInt32;
    case 8:
      return ncclUint32;
    case 9:
      return ncclInt64;
    case 10:
      return ncclUint64;
    case 11:
      return ncclBfloat16;
    case 12:
      return ncclFloat16;
    default:
      throw ArgumentError("NCCL has no type for " + std::string(scalar_names[scalar]));
  }
}
/// By an index into reduction_names.
inline ncclRedOp_t nccl_reduction(std::uint8_t reduction) {
  switch (reduction) {
    case 1:
      return ncclSum;
    case 2:
      return ncclAvg;
    case 3:
      return ncclMax;
    case 4:
      return ncclMin;
    default:
      throw ArgumentError("NCCL knows Sum, Mean, Max and Min only");
  }
}

}  // namespace skein::inline SKEIN_ABI::comm
