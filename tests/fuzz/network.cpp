// SPDX-License-Identifier: Apache-2.0
// Any text as the file of measured networks (SKEIN_NETWORK): an entry whose numbers are those of a network, or none.
#include <skein/comm/measure.hpp>

#include "target.hpp"

namespace {
void run(fuzz::Input data) {
  static fuzz::Folder folder;
  static const std::string path = folder / "network";
  fuzz::write_file(path, data);
  skein::comm::MeasuredNetwork found;
  if (!skein::comm::NetworkCache(path).find("mpi 4 ranks", found)) return;
  for (const double v : found.values())
    if (!(v >= 0 && v < 1e9)) std::abort();
}

std::vector<fuzz::Bytes> seeds() {
  return {fuzz::bytes_of("mpi 2 ranks = 1 2 3 4 5 6 7 8\nmpi 4 ranks = 1e-6 1e-10 2e-6 1e-9 2 1e-10 1e-6 2e-10\n"),
          fuzz::bytes_of("mpi 4 ranks = 1e-6 1e-10 nan 1e-9 2 1e-10 1e-6 -1\n")};
}
}  // namespace

SKEIN_FUZZ_TARGET(network, run, seeds)
