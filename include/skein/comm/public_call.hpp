// SPDX-License-Identifier: Apache-2.0
// Which function of the library a thread is in, of those that all ranks call: a collective that does not match, or for which a
// rank is missing, is then named as its user knows it: "save is a call of all ranks: rank 1 has not called it".
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// The functions that all ranks call. The numbers travel with each collective.
enum class PublicCall : std::uint8_t { none, trainer, fit, evaluate, predict, save, load, load_weights };
/// The names of these functions in messages.
inline constexpr std::string_view public_call_names[] = {"",     "making a Trainer", "fit", "evaluate", "predict", "save",
                                                         "load", "load_weights"};

/// While it lives, this thread is in that call; calls nest. It costs two stores, and each collective that is started a load.
class InPublicCall {
 public:
  static constexpr std::uint8_t opens = 0x80;  ///< set in the code of the first collective of a call

  explicit InPublicCall(PublicCall call) : before_(current_) {
    current_ = static_cast<std::uint8_t>(static_cast<std::uint8_t>(call) | opens);
  }
  InPublicCall(const InPublicCall&) = delete;
  InPublicCall& operator=(const InPublicCall&) = delete;
  ~InPublicCall() { current_ = before_; }

  /// The code of the call, for the signature of a collective that this thread starts.
  static std::uint8_t next() {
    const std::uint8_t code = current_;
    current_ = code & static_cast<std::uint8_t>(~opens);
    return code;
  }
  /// The call that this thread is in, for messages: " in save"; "" where it is in none.
  static std::string text() {
    const std::string_view name = public_call_names[current_ & static_cast<std::uint8_t>(~opens)];
    return name.empty() ? "" : " in " + std::string(name);
  }

 private:
  static inline constinit thread_local std::uint8_t current_ = 0;
  std::uint8_t before_;
};

}  // namespace skein::inline SKEIN_ABI::comm
