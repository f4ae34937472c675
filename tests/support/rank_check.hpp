// SPDX-License-Identifier: Apache-2.0
// RANK_CHECK: an assertion that any thread of any rank may make (Catch's own are for one thread). It throws; the exception ends
// all ranks with its text, which spawn or mpirun hands to the test.
#pragma once
#include <stdexcept>
#include <string>

#define RANK_CHECK(...)                                                                                                     \
  do {                                                                                                                      \
    if (!(__VA_ARGS__)) throw std::runtime_error(std::string(__FILE__ ":") + std::to_string(__LINE__) + ": " #__VA_ARGS__); \
  } while (0)
