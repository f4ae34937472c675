// SPDX-License-Identifier: Apache-2.0
#include "../support/convert_cases.hpp"

TEST_CASE("arrays are converted as their values are", "[ops]") { convert_cases::all<skein::Cpu>(); }
