// SPDX-License-Identifier: Apache-2.0
// Runs fuzz targets without libFuzzer, with the compiler and in the form of the other tests: each on its seeds, their prefixes,
// and random changes of them, the same in each run, and on the inputs that are kept, with a tenth of the changes.
// Usage: fuzz_replay [--changes N] [--target NAME] [FILE...]   (files: in place of the seeds and of what is kept)
#include <cstdio>
#include <cstdlib>
#include <string>

#include <skein/core/random.hpp>

#include "../fuzz/target.hpp"

namespace {
enum class Prefixes { none, all };

std::uint64_t replay(const fuzz::Target& target, const std::vector<fuzz::Bytes>& inputs, std::uint64_t changes,
                     Prefixes prefixes) {
  std::uint64_t runs = 0;
  for (const fuzz::Bytes& bytes : inputs) {
    target.run(bytes);
    ++runs;
    const std::size_t step = 1 + bytes.size() / 500;
    for (std::size_t n = 0; prefixes == Prefixes::all && n < bytes.size(); n += step, ++runs)
      target.run(fuzz::Input(bytes).first(n));
    for (std::uint64_t c = 0; c < changes && !bytes.empty(); ++c, ++runs) {
      fuzz::Bytes changed = bytes;
      for (std::uint64_t k = 0; k <= c % 4; ++k)
        changed[skein::random_below(c, 0, 2 * k, changed.size())] =
            static_cast<std::uint8_t>(skein::random_below(c, 0, 2 * k + 1, 256));
      target.run(changed);
    }
  }
  return runs;
}
}  // namespace

int main(int argc, char** argv) {
  std::uint64_t changes = 1000;
  std::string only;
  std::vector<fuzz::Bytes> files;
  for (int a = 1; a < argc; ++a) {
    const std::string word = argv[a];
    if (word == "--changes" && a + 1 < argc) changes = std::strtoull(argv[++a], nullptr, 10);
    else if (word == "--target" && a + 1 < argc) only = argv[++a];
    else files.push_back(fuzz::read_file(word));
  }
  std::uint64_t runs = 0;
  for (const fuzz::Target& target : fuzz::targets()) {
    if (!only.empty() && only != target.name) continue;
    std::printf("%s: ", target.name);
    std::fflush(stdout);
    std::uint64_t here = replay(target, files.empty() ? target.seeds() : files, changes, Prefixes::all);
    if (files.empty()) here += replay(target, fuzz::kept(target.name), changes / 10, Prefixes::none);
    std::printf("%llu runs, no finding\n", static_cast<unsigned long long>(here));
    runs += here;
  }
  return runs > 0 ? 0 : 2;  // no such target
}
