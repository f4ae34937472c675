// SPDX-License-Identifier: Apache-2.0
// What a call says as it fails.
#pragma once
#include <string>

#include <skein/core/error.hpp>

namespace support {

/// The text of the Exception that f throws; "" where it throws nothing. Others pass through.
template <class Exception = skein::CommError, class Function> std::string thrown(Function&& f) {
  try {
    f();
  } catch (const Exception& e) { return e.what(); }
  return "";
}

}  // namespace support
