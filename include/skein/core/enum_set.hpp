// SPDX-License-Identifier: Apache-2.0
// EnumSet<E>: a set of the values of an enumeration, as a constant. What policy states and communicators declare that they can do
// beyond what each of them has.
#pragma once
#include <initializer_list>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// A set of values of E, which are 0 to 31.
template <class E> class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> list) {
    for (const E e : list) bits_ |= bit(e);
  }
  constexpr bool has(E e) const { return (bits_ & bit(e)) != 0; }
  constexpr EnumSet operator|(EnumSet other) const {
    other.bits_ |= bits_;
    return other;
  }
  constexpr EnumSet operator-(EnumSet other) const {
    other.bits_ = bits_ & ~other.bits_;
    return other;
  }
  constexpr EnumSet operator-(E e) const { return *this - EnumSet{e}; }
  constexpr bool operator==(const EnumSet&) const = default;

 private:
  static constexpr unsigned bit(E e) { return 1u << static_cast<unsigned>(e); }
  unsigned bits_ = 0;
};

}  // namespace skein::inline SKEIN_ABI
