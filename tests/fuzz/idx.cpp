// SPDX-License-Identifier: Apache-2.0
// Any bytes given to the IDX reader, as they are and as the contents of a gzip file: an Idx that holds what its header says, or a
// FileError; and never more memory than the input can hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <skein/data/idx.hpp>

#include "target.hpp"

namespace {
void read(std::span<const unsigned char> bytes) {
  try {
    const skein::data::Idx idx = skein::data::read_idx(bytes, "fuzz");
    std::int64_t count = 1;
    for (const std::int64_t e : idx.extents) count *= e;
    if (count != idx.count()) std::abort();
    if (count > 0 && idx[count - 1] == 12345.678) std::abort();
  } catch (const skein::FileError& e) {
    if (e.path() != "fuzz") std::abort();
  }
}

#if SKEIN_WITH_ZLIB
/// The input as the contents of a sound gzip file, so that mutations reach what stands behind the inflater.
std::vector<unsigned char> framed(fuzz::Input data) {
  z_stream z{};
  if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::vector<unsigned char> out(deflateBound(&z, data.size()) + 64);
  z.next_in = const_cast<std::uint8_t*>(data.data());
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
#endif

void run(fuzz::Input data) {
  read(data);
#if SKEIN_WITH_ZLIB
  if (data.size() < 512) read(framed(data));
#endif
}

std::vector<fuzz::Bytes> seeds() {
  return {{0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3},
          {0, 0, 0x0d, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0x40, 0, 0, 0},
          {0, 0, 9, 2, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff}};
}
}  // namespace

SKEIN_FUZZ_TARGET(idx, run, seeds)
