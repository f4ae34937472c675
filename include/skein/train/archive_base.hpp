// SPDX-License-Identifier: Apache-2.0
// What both archives share: Boost.Serialization's operators, the refusal of what no archive takes, and the call of a class's
// serialize(), wherever it is. All in one function, since each call on the way is three more lines of a compiler's message.
#pragma once
#include <type_traits>

#include "archive_traits.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Base of OutArchive and InArchive, which say how values are transferred and what stands around objects.
template <class Archive, bool Saving> class ArchiveBase {
 public:
  using is_saving = std::bool_constant<Saving>;
  using is_loading = std::bool_constant<!Saving>;

  template <class T> Archive& operator&(T&& value) {
    using Value = std::remove_cvref_t<T>;
    Archive& self = static_cast<Archive&>(*this);
    if constexpr (Named<Value>) {
      self& value.value();
    } else {
      constexpr Kind kind = kind_of<Value, Archive>();
      static_assert(kind != Kind::Pointer,
                    "an archive takes no pointers, views or references: what they point to does not exist in the process that "
                    "reads the file; store the value itself, or an index");
      static_assert(kind != Kind::LongDouble, "long double has another format on each processor: store a double");
      static_assert(
          kind != Kind::Nothing,
          "an archive does not know this type: give it a member template <class Archive> void serialize(Archive& archive, "
          "unsigned version) that says archive & member for each member");
      static_assert(Saving || !std::is_const_v<std::remove_reference_t<T>>, "a const object cannot be read into");
      if constexpr (kind == Kind::Class) {
        Value& object = const_cast<Value&>(value);  // one function serves both archives, as in Boost
        const unsigned version = self.begin_object(archive_version<Value>);
        if constexpr (MemberSerialize<Value, Archive>) object.serialize(self, version);
        else if constexpr (FreeSerialize<Value, Archive>) serialize(self, object, version);
        else BoostAccess<Value>::type::serialize(self, object, version);  // last: Boost's claims to fit every type
        self.end_object();
      } else if constexpr (kind < Kind::Class) {
        self.template transfer<kind>(value);
      }
    }
    return self;
  }
  template <class T> Archive& operator<<(T&& value) requires(Saving) { return *this & value; }
  template <class T> Archive& operator>>(T&& value) requires(!Saving) { return *this & value; }
};

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
