// SPDX-License-Identifier: Apache-2.0
// The bodies of kept_buffers.hpp.
#pragma once
#include "kept_buffers.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_MPI_INLINE KeptBuffers::~KeptBuffers() {
  try {
    if (!mpi_runs() || complete("closing")) return;
  } catch (const MpiError&) {  // MPI says no more of it
  }
  kept_for_ever().push_back(std::move(held_));
}

SKEIN_MPI_INLINE void KeptBuffers::reserve(std::size_t in, std::size_t out) {
  if (held_->in.size() < in) held_->in.resize(in);
  if (held_->out.size() < out) held_->out.resize(out);
}

SKEIN_MPI_INLINE MPI_Request* KeptBuffers::next_request(bool collective) {
  collective_ = collective;
  return &held_->requests.emplace_back(MPI_REQUEST_NULL);
}

SKEIN_MPI_INLINE void KeptBuffers::reserve_requests(std::size_t n) {
  collective_ = false;
  held_->requests.assign(n, MPI_REQUEST_NULL);
}

SKEIN_MPI_INLINE std::vector<std::unique_ptr<KeptBuffers::Held>>& KeptBuffers::kept_for_ever() {
  static auto* const kept = new std::vector<std::unique_ptr<Held>>;
  return *kept;
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
