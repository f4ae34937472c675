// SPDX-License-Identifier: Apache-2.0
// Flags: the options of a program from its command line, `--lr 0.01 --epochs 20`, so that another rate needs no compiler. Each
// flag is bound to a variable, whose value is the default. What cannot be read is one sentence, with the list of flags behind it.
#pragma once
#include <concepts>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "error.hpp"

namespace skein::inline SKEIN_ABI {

/// A flag that there is not, or whose value cannot be read: one sentence, and below it the list of flags.
class FlagError : public ArgumentError {
 public:
  explicit FlagError(const std::string& what, SourceLocation where = SourceLocation::current()) : ArgumentError(what, where) {}
};

namespace detail {
enum class FlagKind : unsigned char { truth, int32, int64, count, real32, real64, words, int32s, real64s, many_words, none };
template <class T> inline constexpr FlagKind flag_kind = FlagKind::none;
template <> inline constexpr FlagKind flag_kind<bool> = FlagKind::truth;
template <> inline constexpr FlagKind flag_kind<int> = FlagKind::int32;
template <> inline constexpr FlagKind flag_kind<long> = FlagKind::int64;
template <> inline constexpr FlagKind flag_kind<unsigned long> = FlagKind::count;
template <> inline constexpr FlagKind flag_kind<float> = FlagKind::real32;
template <> inline constexpr FlagKind flag_kind<double> = FlagKind::real64;
template <> inline constexpr FlagKind flag_kind<std::string> = FlagKind::words;
template <> inline constexpr FlagKind flag_kind<std::vector<int>> = FlagKind::int32s;
template <> inline constexpr FlagKind flag_kind<std::vector<double>> = FlagKind::real64s;
template <> inline constexpr FlagKind flag_kind<std::vector<std::string>> = FlagKind::many_words;
template <class T> inline constexpr bool is_read_from_a_flag = flag_kind<T> != FlagKind::none;

std::string_view launched_rank();
bool another_rank_speaks();

/// A flag and the variable that it sets.
struct FlagEntry {
  std::string name, help, initial;  // initial: the default, as text
  FlagKind kind = FlagKind::none;
  void* value = nullptr;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices{};
};
}  // namespace detail

/// The flags of a program. `Flags flags; flags("lr", lr, "learning rate").within(0, 10); flags.read(argc, argv);`, or by sk::run
/// (core/run.hpp). A flag is --name VALUE or --name=VALUE; a truth value is --name, --no-name or --name=true; of several values
/// it is --name 1,2,4, and --name= sets no words. In a name - and _ are alike. A value that is the name of a flag is given as
/// --name=--other.
class Flags {
 public:
  /// A flag just named: what values it takes.
  class Flag {
   public:
    /// From low to high, both included.
    Flag& within(double low, double high);
    Flag& at_least(double low) { return within(low, std::numeric_limits<double>::infinity()); }
    /// One of these words.
    Flag& one_of(std::vector<std::string> words);

   private:
    friend class Flags;
    Flag(Flags& flags, std::size_t at) : flags_(&flags), at_(at) {}
    Flags* flags_;
    std::size_t at_;
  };

  /// `about`: a line on the program, for --help.
  explicit Flags(std::string about = "") : about_(std::move(about)) {}
  void about(std::string line) { about_ = std::move(line); }

  /// Binds --name to a variable: bool, int, long, std::size_t, float, double, std::string, or a vector of int, double or
  /// std::string. It must outlive read(). Throws ArgumentError for a name that is there.
  template <class T> Flag operator()(std::string name, T& value, std::string help = "") {
    static_assert(
        detail::is_read_from_a_flag<T>,
        "a flag sets a bool, int, long, std::size_t, float, double, std::string, or a std::vector of int, double or std::string");
    return add({std::move(name), std::move(help), {}, detail::flag_kind<T>, &value});
  }

  /// Sets what the command line names; of one flag given twice the last counts. False after --help, which prints help(), of
  /// ranks that a launcher has started by rank 0 alone: the program ends then. Throws FlagError.
  bool read(int argc, const char* const* argv);

  /// What --help prints: a line a flag, with its default; a truth value as --[no-]name.
  std::string help(std::string_view program) const;

 private:
  Flag add(detail::FlagEntry entry);
  detail::FlagEntry* find(std::string_view name);
  bool is_flag(std::string_view given);
  detail::FlagEntry* to_switch_off(std::string_view given);  // --no-name of a truth value
  static std::string meant_by_word(std::string_view word, const detail::FlagEntry* before);
  detail::FlagEntry& named(std::string_view given, std::string_view program, const detail::FlagEntry* before);
  [[noreturn]] void refuse(const std::string& what, std::string_view program) const;

  std::string about_;
  std::vector<detail::FlagEntry> entries_;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "flags.ipp"
#endif
