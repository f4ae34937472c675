// SPDX-License-Identifier: Apache-2.0
// The bodies of collective_call.hpp.
#pragma once
#include "collective_call.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE std::string describe(const Signature& s) {
  if (!is_known(s)) return "a call that this library does not know";
  std::string text(collective_names[static_cast<int>(s.kind)]);
  if (s.reduction) text += "(" + std::string(reduction_names[s.reduction]) + ")";
  if (s.kind == Collective::Barrier) return text;
  text += " of " + std::to_string(s.count) + " ";
  if (s.scalar == 0 && s.element != 1) text += "objects of " + std::to_string(s.element) + " bytes";
  else text += scalar_names[s.scalar];
  if (s.kind == Collective::Broadcast) text += " from rank " + std::to_string(s.root);
  if (s.kind == Collective::Reduce) text += " to rank " + std::to_string(s.root);
  if (s.counts_hash) text += " (own counts, hash " + std::to_string(s.counts_hash % 100000) + ")";
  return text;
}

}  // namespace skein::inline SKEIN_ABI::comm
