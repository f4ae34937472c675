// SPDX-License-Identifier: Apache-2.0
// The archive that writes, behind Boost.Serialization's interface: archive & x, archive << x. Little-endian, fixed widths,
// no type names, no pointers. Numbers as their bytes; a count before strings, vectors and maps; a 32-bit version before each
// object of a class.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "archive_base.hpp"
#include "archive_traits.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Collects the bytes of objects in memory. Types: numbers, enums, bool, std::string, vector, array, pair, tuple, map,
/// optional, and classes with serialize(Archive&, unsigned).
class OutArchive : public detail::ArchiveBase<OutArchive, true> {
 public:
  /// The bytes so far, which leave the archive. Throws ArgumentError where no reader would take them: an archive is for small
  /// objects, and a few bytes that stand for much memory are what a hostile file looks like.
  std::vector<std::byte> take();
  /// For serialize functions that both archives run; while writing, what is wrong is the object.
  [[noreturn]] void refuse(const std::string& what) const { throw ArgumentError("the object cannot be written: " + what); }

 private:
  friend class detail::ArchiveBase<OutArchive, true>;

  unsigned begin_object(unsigned version);
  void end_object() { --depth_; }

  template <detail::Kind kind, class T> void transfer(const T& value) {
    using detail::Kind;
    if constexpr (kind == Kind::Number) {
      put_numbers(&value, 1);
    } else if constexpr (kind == Kind::Bool) {
      bytes_.push_back(value ? std::byte{1} : std::byte{0});
    } else if constexpr (kind == Kind::String) {
      put_count(value.size(), 1);
      put_numbers(value.data(), value.size());
    } else if constexpr (kind == Kind::Vector) {
      put_count(value.size(), detail::element_memory<T>());
      if constexpr (std::is_same_v<typename T::value_type, bool>)
        for (const bool each : value) *this& each;
      else put_elements(value.data(), value.size());
    } else if constexpr (kind == Kind::Array) {
      put_elements(value.data(), value.size());
    } else if constexpr (kind == Kind::CArray) {
      put_elements(value, std::extent_v<T>);
    } else if constexpr (kind == Kind::Map) {
      put_count(value.size(), detail::element_memory<T>());
      for (const auto& [key, mapped] : value) *this& key& mapped;
    } else if constexpr (kind == Kind::Optional) {
      *this& value.has_value();
      if (value) *this&* value;
    } else {
      static_assert(kind == Kind::Pair);
      std::apply([this](const auto&... each) { (*this & ... & each); }, value);
    }
  }
  void put_count(std::size_t count, std::size_t memory);
  template <class T> void put_elements(const T* values, std::size_t count) {
    static_assert(detail::least_bytes<T>() > 0, "an element of a sequence must take at least one byte");
    if constexpr (detail::Number<T>) put_numbers(values, count);
    else
      for (std::size_t i = 0; i < count; ++i) *this& values[i];
  }
  template <class T> void put_numbers(const T* values, std::size_t count) {
    if (count == 0) return;
    const std::size_t start = bytes_.size();
    bytes_.resize(start + count * sizeof(T));
    std::memcpy(bytes_.data() + start, values, count * sizeof(T));
    if constexpr (std::endian::native == std::endian::big)
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < sizeof(T) / 2; ++j)
          std::swap(bytes_[start + i * sizeof(T) + j], bytes_[start + (i + 1) * sizeof(T) - 1 - j]);
  }

  std::vector<std::byte> bytes_;
  std::size_t charged_ = 0;
  int depth_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "out_archive.ipp"
#endif
