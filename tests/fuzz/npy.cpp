// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npy file: a tensor of what the header says, or a FileError within the file. The first byte chooses the type.
#include <skein/tensor/npy.hpp>

#include "target.hpp"

namespace {
template <class Scalar, int Rank> void read(fuzz::Input bytes, skein::NpyTypes types) {
  try {
    const auto t = skein::detail::npy_from_bytes<Scalar, Rank>(bytes, types, "fuzz", 0);
    if (static_cast<std::size_t>(t.size()) > 1 + bytes.size()) std::abort();  // values of a byte at least
  } catch (const skein::FileError& e) {
    if (e.path() != "fuzz" || e.offset() > static_cast<long long>(bytes.size())) std::abort();
  }
}

void run(fuzz::Input data) {
  if (data.empty()) return;
  const fuzz::Input bytes = data.subspan(1);
  const auto types = data[0] & 1 ? skein::NpyTypes::convert : skein::NpyTypes::exact;
  switch (data[0] >> 1 & 7) {
    case 0:
      return read<float, 1>(bytes, types);
    case 1:
      return read<double, 2>(bytes, types);
    case 2:
      return read<int, 1>(bytes, types);
    case 3:
      return read<std::int8_t, 3>(bytes, types);
    case 4:
      return read<std::uint16_t, 2>(bytes, types);
    case 5:
      return read<bool, 1>(bytes, types);
    case 6:
      return read<long, 1>(bytes, types);
    default:
      return read<float, 2>(bytes, types);
  }
}

std::vector<fuzz::Bytes> seeds() {
  std::vector<fuzz::Bytes> all;
  const long extents[] = {2, 3};
  for (const char kind : {'f', 'i', 'u'})
    for (const int choice : {0, 1, 3, 5, 15}) {
      std::string bytes(1, static_cast<char>(choice));
      bytes += skein::detail::npy_header_text(kind, 4, extents, choice == 3 || choice == 15 ? 2 : 1);
      all.push_back(fuzz::bytes_of(bytes += std::string(choice == 3 || choice == 15 ? 24 : 8, '\x40')));
    }
  return all;
}
}  // namespace

SKEIN_FUZZ_TARGET(npy, run, seeds)
