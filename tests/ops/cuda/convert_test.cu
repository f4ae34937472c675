// SPDX-License-Identifier: Apache-2.0
#include <skein/cuda.hpp>
#include <skein/ops/cuda/convert.hpp>

#include "../../support/convert_cases.hpp"

TEST_CASE("arrays are converted on the device as their values are", "[ops][cuda]") { convert_cases::all<skein::Cuda>(); }
