// SPDX-License-Identifier: Apache-2.0
// What a layer is called in messages and summaries.
#pragma once
#include <string_view>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::nn::detail {

/// "Linear<120>" out of the compiler's signature of this function: for people, and for files to say of what they are.
template <class L> constexpr std::string_view signature() { return __PRETTY_FUNCTION__; }
template <class L> constexpr std::string_view kind_of() {
  std::string_view s = signature<L>();
  const auto at = s.find("L = ");
  if (at == s.npos) return s;
  s.remove_prefix(at + 4);
  const auto end = s.find_first_of(";]");
  s = s.substr(0, end);
  // without the namespaces before the name itself
  const auto angle = s.find('<');
  const auto colon = s.substr(0, angle).rfind("::");
  return colon == s.npos ? s : s.substr(colon + 2);
}
/// "Linear": without arguments, so that ranks and files of different compilers have the same; nothing of a lambda.
template <class L> constexpr std::string_view bare_name() {
  const std::string_view name = kind_of<L>().substr(0, kind_of<L>().find('<'));
  return name.starts_with('(') ? std::string_view() : name;
}
/// The layer as the user wrote it, of one that runs it.
template <class L> struct Named { using type = L; };

}  // namespace skein::inline SKEIN_ABI::nn::detail
