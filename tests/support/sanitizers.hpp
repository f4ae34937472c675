// SPDX-License-Identifier: Apache-2.0
// Which sanitizer this program is built with, for tests of what it replaces: limits of memory, operator new, a race on purpose.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define SKEIN_TEST_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define SKEIN_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SKEIN_TEST_ASAN 1
#elif __has_feature(thread_sanitizer)
#define SKEIN_TEST_TSAN 1
#endif
#endif

#ifndef SKEIN_TEST_ASAN
#define SKEIN_TEST_ASAN 0
#endif
#ifndef SKEIN_TEST_TSAN
#define SKEIN_TEST_TSAN 0
#endif
