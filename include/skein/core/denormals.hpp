// SPDX-License-Identifier: Apache-2.0
// Denormals: numbers closer to zero than the smallest normal one (1.2e-38 in float). Processors take a hundred cycles and more
// for an operation on one; momenta of weights that have stopped moving decay into them. A thread may treat them as zero, which is
// a mode of its floating-point unit.
#pragma once
#include <cstdint>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// What the workers of a parallel region do with denormals: operands and results that are denormal count as zero, or not.
enum class Denormals { flush, keep };

namespace detail {
/// The floating-point mode of the calling thread. x86: MXCSR; AArch64: FPCR; elsewhere there is nothing to set, and nothing is.
struct FloatMode {
#if defined(__SSE__)
  static constexpr std::uint32_t flush = 0x8040;  // results (FTZ, bit 15) and operands (DAZ, bit 6)
  static std::uint32_t get() { return __builtin_ia32_stmxcsr(); }
  static void set(std::uint32_t mode) { __builtin_ia32_ldmxcsr(mode); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t flush = 1u << 24;  // FZ: both
  static std::uint64_t get() {
    std::uint64_t mode;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set(std::uint64_t mode) { __asm__ __volatile__("msr fpcr, %0" : : "r"(mode) : "memory"); }
#else
  static constexpr std::uint32_t flush = 0;
  static std::uint32_t get() { return 0; }
  static void set(std::uint32_t) {}
#endif
  static constexpr bool exists = flush != 0;
};
}  // namespace detail

/// The calling thread's mode for as long as this lives; what it was comes back after it, after exceptions too. `keep` clears the
/// mode where it is set, so that a result does not depend on the caller's. What arithmetic has raised meanwhile (<cfenv>) stays
/// raised.
class [[nodiscard]] DenormalScope {
 public:
  explicit DenormalScope(Denormals denormals) {
    const auto now = Mode::get();
    before_ = now & Mode::flush;
    Mode::set((now & ~Mode::flush) | (denormals == Denormals::flush ? Mode::flush : 0));
  }
  DenormalScope(const DenormalScope&) = delete;
  DenormalScope& operator=(const DenormalScope&) = delete;
  ~DenormalScope() { Mode::set((Mode::get() & ~Mode::flush) | before_); }

 private:
  using Mode = detail::FloatMode;
  decltype(Mode::get()) before_;
};

}  // namespace skein::inline SKEIN_ABI
