// SPDX-License-Identifier: Apache-2.0
// Makes an ordinary program of a fuzz target where there is no libFuzzer: with -DSKEIN_FUZZ_REPLAY it runs the target on every
// file named, on every prefix of it, and on a number of random changes of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <skein/core/random.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

#ifdef SKEIN_FUZZ_REPLAY
/// Usage: fuzz_NAME [--changes N] FILE...
int main(int argc, char** argv) {
  std::uint64_t changes = 1000, runs = 0;
  for (int a = 1; a < argc; ++a) {
    if (std::string(argv[a]) == "--changes" && a + 1 < argc) {
      changes = std::strtoull(argv[++a], nullptr, 10);
      continue;
    }
    std::ifstream file(argv[a], std::ios::binary);
    if (!file) return std::fprintf(stderr, "%s cannot be read\n", argv[a]), 1;
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    for (std::size_t n = 0; n < bytes.size() && n < 4096; ++n, ++runs) LLVMFuzzerTestOneInput(bytes.data(), n);
    for (std::uint64_t c = 0; c < changes && !bytes.empty(); ++c, ++runs) {
      std::vector<std::uint8_t> changed = bytes;
      for (std::uint64_t k = 0; k <= c % 4; ++k)
        changed[skein::random_below(c, 0, 2 * k, changed.size())] =
            static_cast<std::uint8_t>(skein::random_below(c, 0, 2 * k + 1, 256));
      LLVMFuzzerTestOneInput(changed.data(), changed.size());
    }
  }
  std::printf("%llu runs, no finding\n", static_cast<unsigned long long>(runs));
  return 0;
}
#endif
