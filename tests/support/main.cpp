// SPDX-License-Identifier: Apache-2.0
// Catch2's main for every test program without MPI: compiled once.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
