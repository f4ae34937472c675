// SPDX-License-Identifier: Apache-2.0
// The archive that reads, behind Boost.Serialization's interface: archive & x, archive >> x. It believes nothing: every count
// is compared with the bytes that are left before anything is allocated, what it allocates in all is limited by the size
// of its bytes plus a budget, nesting is limited, and every fault is a FileError with the byte where it is.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "archive_base.hpp"
#include "archive_traits.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// Reads what OutArchive wrote, in the same order. The bytes must outlive it.
class InArchive : public detail::ArchiveBase<InArchive, false> {
 public:
  /// The path and the offset of the first byte are for messages.
  explicit InArchive(std::span<const std::byte> bytes, std::string path = "archive in memory", long long offset = 0,
                     std::size_t budget = detail::memory_budget);

  std::size_t left() const { return bytes_.size() - next_; }
  /// Bytes that nobody asked for are a fault: the object was another one.
  void finish() const;
  /// Throws a FileError for the place that was reached. For serialize functions that check what they read.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  friend class detail::ArchiveBase<InArchive, false>;

  unsigned begin_object(unsigned known);
  void end_object() { --depth_; }

  template <detail::Kind kind, class T> void transfer(T& value) {
    using detail::Kind;
    if constexpr (kind == Kind::Number) {
      get_numbers(&value, 1);
    } else if constexpr (kind == Kind::Bool) {
      value = get_bool();
    } else if constexpr (kind == Kind::String) {
      value.resize(get_count(1, 1));
      get_numbers(value.data(), value.size());
    } else if constexpr (kind == Kind::Vector) {
      get_vector(value);
    } else if constexpr (kind == Kind::Array) {
      get_elements(value.data(), value.size());
    } else if constexpr (kind == Kind::CArray) {
      get_elements(value, std::extent_v<T>);
    } else if constexpr (kind == Kind::Map) {
      get_map(value);
    } else if constexpr (kind == Kind::Optional) {
      value.reset();
      if (get_bool()) *this& value.emplace();
    } else {
      static_assert(kind == Kind::Pair);
      std::apply([this](auto&... each) { (*this & ... & each); }, value);
    }
  }

  template <class Vector> void get_vector(Vector& value) {
    using Element = typename Vector::value_type;
    static_assert(detail::least_bytes<Element>() > 0, "an element of a sequence must take at least one byte");
    const std::size_t count = get_count(detail::least_bytes<Element>(), detail::element_memory<Vector>());
    value.clear();
    value.resize(count);
    if constexpr (std::is_same_v<Element, bool>)
      for (std::size_t i = 0; i < count; ++i) value[i] = get_bool();
    else get_elements(value.data(), count);
  }
  /// Keys must ascend strictly, as they were written: each map has one form.
  template <class Map> void get_map(Map& value) {
    using Key = typename Map::key_type;
    using Mapped = typename Map::mapped_type;
    constexpr std::size_t least = detail::least_bytes<Key>() + detail::least_bytes<Mapped>();
    static_assert(least > 0, "an element of a sequence must take at least one byte");
    const std::size_t count = get_count(least, detail::element_memory<Map>());
    value.clear();
    for (std::size_t i = 0; i < count; ++i) {
      Key key{};
      *this& key;
      if (!value.empty() && !value.key_comp()(value.rbegin()->first, key)) refuse("the keys of a map do not ascend");
      *this& value.emplace_hint(value.end(), std::move(key), Mapped{})->second;
    }
  }
  template <class T> void get_elements(T* values, std::size_t count) {
    if constexpr (detail::Number<T>) get_numbers(values, count);
    else
      for (std::size_t i = 0; i < count; ++i) *this& values[i];
  }

  bool get_bool();
  /// A count that the bytes left can hold, of elements that the budget can hold.
  std::size_t get_count(std::size_t least, std::size_t memory);
  template <class T> void get_numbers(T* values, std::size_t count) {
    if (count > left() / sizeof(T)) refuse(text("{} bytes are wanted, but only {} are left", count * sizeof(T), left()));
    if (count == 0) return;
    std::memcpy(static_cast<void*>(values), bytes_.data() + next_, count * sizeof(T));
    next_ += count * sizeof(T);
    if constexpr (std::endian::native == std::endian::big)
      for (std::size_t i = 0; i < count; ++i) {
        char* bytes = reinterpret_cast<char*>(values + i);
        for (std::size_t j = 0; j < sizeof(T) / 2; ++j) std::swap(bytes[j], bytes[sizeof(T) - 1 - j]);
      }
  }

  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
  std::string path_;
  long long offset_;
  std::size_t budget_, charged_ = 0;
  int depth_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "in_archive.ipp"
#endif
