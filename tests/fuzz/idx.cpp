// SPDX-License-Identifier: Apache-2.0
// Any bytes given to the IDX reader, as they are and as the contents of a gzip file: an Idx that holds what its header says, or a
// FileError; and never more memory than the input can hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <skein/data/idx.hpp>

#include "replay.hpp"

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
std::vector<unsigned char> framed(const std::uint8_t* data, std::size_t size) {
  z_stream z{};
  if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::vector<unsigned char> out(deflateBound(&z, size) + 64);
  z.next_in = const_cast<std::uint8_t*>(data);
  z.avail_in = static_cast<uInt>(size);
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
#endif
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read({data, size});
#if SKEIN_WITH_ZLIB
  if (size < 512) read(framed(data, size));
#endif
  return 0;
}
