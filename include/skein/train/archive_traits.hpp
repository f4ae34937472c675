// SPDX-License-Identifier: Apache-2.0
// What the two archives of the library know about types: which they take, how many bytes each takes at least, which version
// of a class this program writes. Works with Boost.Serialization's macros where the user's types carry them (friend class
// boost::serialization::access, BOOST_CLASS_VERSION), and needs nothing of Boost.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../core/error.hpp"

// Only named, never defined here: they are used where Boost's headers have defined them.
namespace boost::serialization {
class access;
template <class T> struct version;
}  // namespace boost::serialization

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// A file or an object in it was written by a later version of its program than this one.
class VersionError : public FileError {
 public:
  VersionError(const std::string& path, long long offset, const std::string& what,
               SourceLocation where = SourceLocation::current())
      : FileError(path, offset, what, where) {}
};

namespace detail {
template <class T> concept Complete = requires { sizeof(T); };
template <class T> struct BoostAccess { using type = boost::serialization::access; };  // dependent: looked at late

template <class T> concept SaysItsVersion = requires {
  { T::archive_version } -> std::convertible_to<unsigned>;
};
template <class T> consteval unsigned class_version() {
  if constexpr (SaysItsVersion<T>) return T::archive_version;
  else if constexpr (Complete<boost::serialization::version<T>>)
    return static_cast<unsigned>(boost::serialization::version<T>::value);
  else return 0;
}
}  // namespace detail

/// The version of T that this program writes, and the latest that it reads: T::archive_version, what BOOST_CLASS_VERSION says,
/// or 0. Specialise it for types that you cannot change.
template <class T> inline constexpr unsigned archive_version = detail::class_version<T>();

namespace detail {
template <class T> struct IsVector : std::false_type {};
template <class T> struct IsVector<std::vector<T>> : std::true_type {};
template <class T> struct IsArray : std::false_type {};
template <class T, std::size_t N> struct IsArray<std::array<T, N>> : std::true_type {};
template <class T> struct IsMap : std::false_type {};
template <class K, class V, class C> struct IsMap<std::map<K, V, C>> : std::true_type {};
template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type {};
template <class T> struct IsPair : std::false_type {};
template <class A, class B> struct IsPair<std::pair<A, B>> : std::true_type {};
template <class... T> struct IsPair<std::tuple<T...>> : std::true_type {};

/// Points to something: raw and smart pointers, views, references.
template <class T> concept Pointing = std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T> ||
    std::same_as<T, std::string_view> || requires(T t) {
  typename T::element_type;
  t.get();
} || requires(T t) {
  typename T::element_type;
  t.data();
  t.size_bytes();
};

template <class T>
concept Number = (std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, long double>) || std::is_enum_v<T>;

template <class T, class Archive> concept MemberSerialize = requires(T& t, Archive& archive) { t.serialize(archive, 0u); };
template <class T, class Archive> concept FriendSerialize = Complete<typename BoostAccess<T>::type> &&
    requires(T& t, Archive& archive) {
  BoostAccess<T>::type::serialize(archive, t, 0u);
};
template <class T, class Archive> concept FreeSerialize = requires(T& t, Archive& archive) { serialize(archive, t, 0u); };
/// Boost's BOOST_SERIALIZATION_NVP(x): a name beside a value. The name is not written.
template <class T> concept Named = requires(T& t) {
  t.name();
  t.value();
  t.const_value();
};

enum class Kind { Number, Bool, String, Vector, Array, CArray, Map, Optional, Pair, Class, Pointer, LongDouble, Nothing };

template <class T, class Archive> consteval Kind kind_of() {
  if constexpr (Pointing<T>) return Kind::Pointer;
  else if constexpr (std::same_as<T, bool>) return Kind::Bool;
  else if constexpr (Number<T>) return Kind::Number;
  else if constexpr (std::same_as<T, long double>) return Kind::LongDouble;
  else if constexpr (std::same_as<T, std::string>) return Kind::String;
  else if constexpr (IsVector<T>::value) return Kind::Vector;
  else if constexpr (IsArray<T>::value) return Kind::Array;
  else if constexpr (std::is_bounded_array_v<T>) return Kind::CArray;
  else if constexpr (IsMap<T>::value) return Kind::Map;
  else if constexpr (IsOptional<T>::value) return Kind::Optional;
  else if constexpr (IsPair<T>::value) return Kind::Pair;
  else if constexpr (std::is_class_v<T> &&
                     (MemberSerialize<T, Archive> || FreeSerialize<T, Archive> || FriendSerialize<T, Archive>))
    return Kind::Class;
  else return Kind::Nothing;
}

/// The fewest bytes that a value of T takes in an archive: the bound for every count.
template <class T> consteval std::size_t least_bytes() {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) return sizeof(T);
  else if constexpr (std::same_as<T, std::string> || IsVector<T>::value || IsMap<T>::value) return 8;
  else if constexpr (IsArray<T>::value) return std::tuple_size_v<T> * least_bytes<typename T::value_type>();
  else if constexpr (std::is_bounded_array_v<T>) return std::extent_v<T> * least_bytes<std::remove_extent_t<T>>();
  else if constexpr (IsOptional<T>::value) return 1;
  else if constexpr (IsPair<T>::value) return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + least_bytes<std::tuple_element_t<I, T>>());
    }
  (std::make_index_sequence<std::tuple_size_v<T>>());
  else return 4;  // a class begins with its version
}

/// The memory that an element of a sequence takes; of a map with its node and the heap's header.
template <class Sequence> consteval std::size_t element_memory() {
  return sizeof(typename Sequence::value_type) + (IsMap<Sequence>::value ? 48 : 0);
}
/// What an archive may take in memory beyond the number of its bytes: checked on both sides, so that what was written is read.
inline constexpr std::size_t memory_budget = std::size_t{64} << 20;

/// Objects in objects: deeper is refused on both sides, so that no file can exhaust the stack.
inline constexpr int deepest = 64;
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
