// expect: a compressor has std::span<const float> residual() const and set_residual(std::span<const float>), and declares keeps_residual = true: all or none
// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <vector>

#include <skein/parallel/data/compress.hpp>

/// Keeps what it leaves out, which a training shall save.
struct Keeps {
  static constexpr std::string_view name = "keeps";
  static constexpr bool linear = true;
  static constexpr int rounds = 1;
#ifdef SKEIN_TWIN
  static constexpr bool keeps_residual = true;
#endif
  using Element = float;
  std::size_t elements(std::size_t n, int) const { return n; }
  void encode(std::span<const float>, std::span<float>, int) {}
  void decode(std::span<const float>, std::span<float>) {}
  std::span<const float> residual() const { return left; }
  void set_residual(std::span<const float> values) { left.assign(values.begin(), values.end()); }
  std::vector<float> left;
};

int main() { return static_cast<int>(sizeof(skein::parallel::Compress<Keeps>)) - 1; }
