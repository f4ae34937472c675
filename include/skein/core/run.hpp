// SPDX-License-Identifier: Apache-2.0
// run: a program's main. What is thrown becomes one line on the error output and the exit code, after what was printed so far;
// without it C++ ends such a program with "Aborted", and buffered output is lost. Options come from the command line.
#pragma once
#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "flags.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

/// Options of a program: a struct whose `void flags(sk::Flags& f)` names its fields, f("lr", lr, "learning rate").
template <class T> concept FlagOptions = std::default_initializable<T> && requires(T& options, Flags& flags) {
  options.flags(flags);
};

namespace detail {
/// Calls call(object) and returns what it returns; prints what it throws, after the output so far, and returns 1, of a
/// FlagError 2.
int run_guarded(int argc, const char* const* argv, int (*call)(void*), void* object);

template <class Body, class... Arguments> int code_of(Body& body, const Arguments&... arguments) {
  if constexpr (std::is_void_v<std::invoke_result_t<Body&, const Arguments&...>>) {
    body(arguments...);
    return 0;
  } else {
    return static_cast<int>(body(arguments...));
  }
}
template <class Function> int guarded(int argc, char** argv, Function function) {
  return run_guarded(
      argc, argv, [](void* object) { return (*static_cast<Function*>(object))(); }, std::addressof(function));
}
}  // namespace detail

/// `int main(int argc, char** argv) { return sk::run(argc, argv, [&] { ... }); }`: 0, or what body returns. An exception is
/// printed as "program: its message", and 1 is returned; of an Interrupted 128 + its signal.
template <class Body>
requires std::invocable<Body&>
int run(int argc, char** argv, Body&& body) {
  return detail::guarded(argc, argv, [&] { return detail::code_of(body); });
}

/// Calls body with options that the command line sets: `sk::run<Options>(argc, argv, [&](const Options& o) { ... })`. After
/// --help, which prints the list of flags, it returns 0 without a call of body; for a wrong flag 2.
template <FlagOptions Options, class Body>
requires std::invocable<Body&, const Options&>
int run(int argc, char** argv, Body&& body) {
  return detail::guarded(argc, argv, [&] {
    Options options;
    Flags flags;
    options.flags(flags);
    return flags.read(argc, argv) ? detail::code_of(body, options) : 0;
  });
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "run.ipp"
#endif
