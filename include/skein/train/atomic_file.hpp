// SPDX-License-Identifier: Apache-2.0
// The files of a training appear whole or not at all: core/atomic_file.hpp, under the names of this house.
#pragma once
#include "../core/atomic_file.hpp"

namespace skein::inline SKEIN_ABI::train {
using skein::AtomicFile;
namespace detail {
using skein::detail::parent_of;
using skein::detail::sync_folder;
}  // namespace detail
}  // namespace skein::inline SKEIN_ABI::train
