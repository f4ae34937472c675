// SPDX-License-Identifier: Apache-2.0
// Tensors from and to NumPy's .npy files: read into the host's memory, written from any device through it. A malformed file is a
// FileError with path, byte offset and reason; nothing is allocated that the file does not hold.
#pragma once
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "../core/atomic_file.hpp"
#include "npy_header.hpp"
#include "tensor.hpp"

namespace skein::inline SKEIN_ABI {

/// exact: the file must hold the asked scalar type; convert: each value is cast to it, and one that it cannot hold is a FileError
/// (1e39 as a float, NaN or 300 as an 8-bit integer; a fraction is cut off).
enum class NpyTypes { exact, convert };

namespace detail {

/// Whether a number of a file fits another type: what is finite stays so, and an integer is in range.
template <class S, class From> constexpr bool npy_holds(From value) {
  if constexpr (std::is_same_v<S, bool> || std::is_same_v<From, bool>) return true;
  else if constexpr (std::is_floating_point_v<S> && std::is_floating_point_v<From>)
    return sizeof(S) >= sizeof(From) || !(std::abs(value) > static_cast<From>(std::numeric_limits<S>::max())) ||
           std::isinf(value);
  else if constexpr (std::is_floating_point_v<S>) return true;
  else if constexpr (std::is_integral_v<From>) return std::in_range<S>(value);
  else {
    const double whole = std::trunc(static_cast<double>(value)), end = std::ldexp(1.0, std::numeric_limits<S>::digits);
    return whole < end && whole >= (std::is_signed_v<S> ? -end : 0.0);
  }
}

/// Values [first, first + n) of a file.
template <class From, class S>
void npy_values(S* to, const unsigned char* bytes, long first, long n, bool swapped, const std::string& path) {
  for (long i = first; i < first + n; ++i, bytes += sizeof(From)) {
    unsigned char raw[sizeof(From)];
    std::memcpy(raw, bytes, sizeof(From));
    if (swapped) std::reverse(raw, raw + sizeof(From));
    if constexpr (std::is_same_v<From, bool>) {
      to[i] = static_cast<S>(raw[0] != 0);
    } else {
      From value;
      std::memcpy(&value, raw, sizeof(From));
      if (!npy_holds<S>(value)) throw_not_held(path, i, static_cast<double>(value), npy_kind<S>(), static_cast<int>(sizeof(S)));
      to[i] = static_cast<S>(value);
    }
  }
}

/// Any type of file into S.
template <class S>
void npy_convert(S* to, const unsigned char* bytes, long first, long n, const NpyHeader& h, const std::string& path) {
  switch (h.kind) {
    case 'b':
      return npy_values<bool>(to, bytes, first, n, h.swapped, path);
    case 'f':
      return h.width == 4 ? npy_values<float>(to, bytes, first, n, h.swapped, path)
                          : npy_values<double>(to, bytes, first, n, h.swapped, path);
    case 'i':
      return h.width == 1   ? npy_values<std::int8_t>(to, bytes, first, n, h.swapped, path)
             : h.width == 2 ? npy_values<std::int16_t>(to, bytes, first, n, h.swapped, path)
             : h.width == 4 ? npy_values<std::int32_t>(to, bytes, first, n, h.swapped, path)
                            : npy_values<std::int64_t>(to, bytes, first, n, h.swapped, path);
    default:
      return h.width == 1   ? npy_values<std::uint8_t>(to, bytes, first, n, h.swapped, path)
             : h.width == 2 ? npy_values<std::uint16_t>(to, bytes, first, n, h.swapped, path)
             : h.width == 4 ? npy_values<std::uint32_t>(to, bytes, first, n, h.swapped, path)
                            : npy_values<std::uint64_t>(to, bytes, first, n, h.swapped, path);
  }
}

/// Makes the tensor that a parsed header describes; `read(to, bytes)` delivers the values.
template <class S, int R, class Read>
Tensor<S, R, Cpu> npy_tensor(const NpyHeader& h, NpyTypes types, const std::string& path, long long base, Read&& read) {
  const bool same = h.kind == npy_kind<S>() && h.width == static_cast<int>(sizeof(S)) && !h.swapped && h.kind != 'b';
  if (static_cast<int>(h.extents.size()) != R)
    throw FileError(path, base,
                    text("holds an array of shape {}, a tensor of rank {} was asked for",
                         shape_text(h.extents.data(), static_cast<int>(h.extents.size())), R));
  if (types == NpyTypes::exact && (h.kind != npy_kind<S>() || h.width != static_cast<int>(sizeof(S))))
    throw FileError(path, base,
                    text("holds values of type {}, {}{} was asked for: ask for its type, or convert with NpyTypes::convert",
                         h.type(), npy_kind<S>(), sizeof(S)));
  Dims<R> extents;
  for (int i = 0; i < R; ++i) extents.e[i] = h.extents[static_cast<std::size_t>(h.fortran ? R - 1 - i : i)];
  Tensor<S, R, Cpu> t(extents);
  const long n = t.size();
  const std::size_t bytes = static_cast<std::size_t>(n) * static_cast<std::size_t>(h.width);
  if (same) {
    read(reinterpret_cast<unsigned char*>(t.data()), bytes);
  } else {
    constexpr long piece = 1 << 16;
    std::vector<unsigned char> raw(static_cast<std::size_t>(std::min(n, piece) * h.width));
    for (long i = 0; i < n; i += piece) {
      const long count = std::min(piece, n - i);
      read(raw.data(), static_cast<std::size_t>(count * h.width));
      npy_convert(t.data(), raw.data(), i, count, h, path);
    }
  }
  if (h.fortran && R > 1) return Tensor<S, R, Cpu>(t.view().transpose());
  return t;
}

/// An array that lies in memory, header and all.
template <class S, int R>
Tensor<S, R, Cpu> npy_from_bytes(std::span<const unsigned char> bytes, NpyTypes types, const std::string& path, long long base) {
  const NpyHeader h = parse_npy_header(bytes, static_cast<long long>(bytes.size()), path, base);
  return npy_tensor<S, R>(h, types, path, base, [&](unsigned char* to, std::size_t n) {
    if (n) std::memcpy(to, bytes.data() + h.bytes, n);
  });
}

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// Throws FileError where it cannot be opened to be read, or is no plain file: one that is a pipe would be waited for.
inline File open_file(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) throw FileError(path, -1, "is no plain file");
  File f(std::fopen(path.c_str(), "rb"));
  if (!f) throw FileError(path, -1, "cannot be opened", errno);
  return f;
}
inline long long file_size(std::FILE* f, const std::string& path) {
  if (std::fseek(f, 0, SEEK_END) != 0) throw FileError(path, -1, "has no size: it must be a plain file");
  const long long n = std::ftell(f);
  if (n < 0 || n == LONG_MAX || std::fseek(f, 0, SEEK_SET) != 0)
    throw FileError(path, -1, "has no size: it must be a plain file");
  return n;
}
inline void read_bytes(std::FILE* f, unsigned char* to, std::size_t n, const std::string& path) {
  const long at = std::ftell(f);
  const std::size_t got = n ? std::fread(to, 1, n, f) : 0;
  if (got != n) throw FileError(path, at + static_cast<long long>(got), "ended while it was read");
}

/// Header and values of a view without gaps.
template <class S, int R> std::string npy_header_of(const TensorView<const S, R, Cpu>& v) {
  return npy_header_text(npy_kind<S>(), static_cast<int>(sizeof(S)), v.extents.e, R);
}
}  // namespace detail

/// Reads a .npy file. Throws FileError: malformed, another rank, another type (unless converted).
template <class Scalar, int Rank> Tensor<Scalar, Rank, Cpu> load_npy(const std::string& path, NpyTypes types = NpyTypes::exact) {
  const detail::File file = detail::open_file(path);
  const long long size = detail::file_size(file.get(), path);
  return detail::reading(path, [&] {
    std::vector<unsigned char> start(static_cast<std::size_t>(std::min(size, 12LL)));
    detail::read_bytes(file.get(), start.data(), start.size(), path);
    const std::size_t header = static_cast<std::size_t>(detail::npy_header_bytes(start, size, path, 0));
    const std::size_t have = start.size();
    start.resize(std::max(header, have));
    if (header > have) detail::read_bytes(file.get(), start.data() + have, header - have, path);
    const NpyHeader h = detail::parse_npy_header(start, size, path, 0);
    if (std::fseek(file.get(), static_cast<long>(h.bytes), SEEK_SET) != 0)
      throw FileError(path, h.bytes, "cannot be read from here");
    return detail::npy_tensor<Scalar, Rank>(
        h, types, path, 0, [&](unsigned char* to, std::size_t n) { detail::read_bytes(file.get(), to, n, path); });
  });
}

/// Writes a tensor, a view or an expression as a .npy file of version 1.0; of another device, through a copy on the host. A
/// reader sees the old file or the new one (core/atomic_file.hpp). Throws FileError.
template <TensorExpression E> void save_npy(const std::string& path, const E& e) {
  using T = std::remove_cvref_t<E>;
  using S = typename T::Scalar;
  if constexpr (!std::is_same_v<typename T::Device, Cpu>) {
    save_npy(path, to_host(e));
  } else if constexpr (detail::IsView<T>::value) {
    if (!e.contiguous()) return save_npy(path, eval(e));
    const std::string header = detail::npy_header_of(TensorView<const S, T::rank, Cpu>(e));
    AtomicFile file(path);
    file.append(header.data(), header.size());
    file.append(e.data, sizeof(S) * static_cast<std::size_t>(e.size()));
    file.commit();
  } else if constexpr (requires { e.view(); }) {
    save_npy(path, e.view());
  } else {
    save_npy(path, eval(e));
  }
}

}  // namespace skein::inline SKEIN_ABI
