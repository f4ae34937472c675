// SPDX-License-Identifier: Apache-2.0
// The exceptions of the library. One base, so that a program can catch everything; a few kinds, so that it can tell a bad
// file from a bad call from a failed rank. Every message says what failed, where, and how to mend it. (No inherited
// constructors: nvcc 13.0 crashes on their default arguments.)
#pragma once
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "config.hpp"
#include "text.hpp"

namespace skein::inline SKEIN_ABI {

/// Where a call stands. Not std::source_location: clang 14 has none over libstdc++ 12.
struct SourceLocation {
  const char* file = "";
  int line = 0;
  const char* function = "";
  static constexpr SourceLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                                          const char* function = __builtin_FUNCTION()) {
    return {file, line, function};
  }
};

/// Base of every exception that the library throws. Its text is printable(): bytes of a file or a name do not reach a terminal.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, SourceLocation where = SourceLocation::current());
  /// The place in the library, or in the caller, that found the fault.
  const SourceLocation& where() const noexcept { return where_; }

 private:
  SourceLocation where_;
};

namespace detail {
/// The message of the Error that was made last, on whichever thread, cut at 500 characters: for who ends the job while an
/// exception passes and cannot look at it. Empty where there was none.
std::string last_error();
/// Who ends the job for an exception that passes it, as the world's communicator does, leaves that to the run() (run.hpp) further
/// out on this thread: it sees the exception, and calls end(its message). False where there is none.
bool leave_to_run(void (*end)(const std::string& message));
/// Where an Interrupted is on its way to a run(): that says its message now. Before what takes long, MPI's end, since the
/// launcher may give no time afterwards.
void say_interrupt();
/// Throws the ShapeError of an index that is not within [0, size); debug builds (SKEIN_CHECKED) call it.
[[noreturn]] void refuse_index(long index, long size, int axis = 0);
/// Throws the ArgumentError of a setting whose number is no value of its enumeration; `words`: those that there are.
[[noreturn]] void refuse_value(const char* who, const char* setting, long long value, const char* words);
/// Throws as refuse_value() where `value` is not within 0 to `last`: only a cast from a number makes such a value.
template <class Enum> void demand_value(const char* who, const char* setting, Enum value, Enum last, const char* words) {
  const auto number = static_cast<long long>(value);
  if (number < 0 || number > static_cast<long long>(last)) refuse_value(who, setting, number, words);
}
/// Throws the ArgumentError of an object that was moved from.
[[noreturn]] void refuse_moved(const char* what);
}  // namespace detail

/// Extents that do not fit each other: names the operation and both shapes.
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& what, SourceLocation where = SourceLocation::current()) : Error(what, where) {}
};
/// A wrong value of an option or argument.
class ArgumentError : public Error {
 public:
  explicit ArgumentError(const std::string& what, SourceLocation where = SourceLocation::current()) : Error(what, where) {}
};
/// A collective that failed: a rank that died, differs or did not arrive; the message names it.
class CommError : public Error {
 public:
  explicit CommError(const std::string& what, SourceLocation where = SourceLocation::current()) : Error(what, where) {}
};
/// Memory of the host that is not to be had, for the arrays of a model, a step or a data set: says how much was asked for.
class MemoryError : public Error {
 public:
  explicit MemoryError(std::size_t bytes, SourceLocation where = SourceLocation::current());
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
};
/// A device call that failed: names the operation and the status.
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& what, SourceLocation where = SourceLocation::current()) : Error(what, where) {}
};

/// A fit that a signal has ended, on all ranks after the same step. sk::run returns 128 + signal(), as a shell says it of a
/// program that a signal ended.
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& what, SourceLocation where = SourceLocation::current());
  Interrupted(const Interrupted& o);
  Interrupted& operator=(const Interrupted&) = default;
  ~Interrupted() override;
  int signal() const noexcept { return signal_; }
  /// One is on its way, or kept: ranks leave together then, and a communicator's end waits for the others.
  static bool any();

 private:
  int signal_;
};

namespace detail {
/// A fault leaves a scope at whose beginning so many exceptions were on their way: not an Interrupted, with which all ranks
/// leave.
inline bool fault_leaves(int uncaught) { return std::uncaught_exceptions() > uncaught && !Interrupted::any(); }
}  // namespace detail

/// A file that is missing, malformed, truncated or of another kind. Carries the path and the byte offset of the fault, and the
/// errno where a call to the system failed.
class FileError : public Error {
 public:
  FileError(const std::string& path, long long offset, const std::string& what, SourceLocation where = SourceLocation::current());
  /// A call to the system failed with this errno, whose text is added.
  FileError(const std::string& path, long long offset, const std::string& what, int error,
            SourceLocation where = SourceLocation::current());
  const std::string& path() const noexcept { return path_; }
  /// Byte offset of the fault in the (uncompressed) file; -1 where the file as a whole is meant.
  long long offset() const noexcept { return offset_; }
  /// The errno of the call that failed; 0 where the calls succeeded, and what the file holds is at fault.
  int error() const noexcept { return error_; }

 private:
  std::string path_;
  long long offset_;
  int error_ = 0;
};

namespace detail {
[[noreturn]] void refuse_memory(const std::string& path);
/// read() of a file: where there is not the memory for it, a FileError, as for every other fault of a file.
template <class Read> decltype(auto) reading(const std::string& path, Read&& read) {
  try {
    return read();
  } catch (const std::bad_alloc&) { refuse_memory(path); } catch (const MemoryError&) {
    refuse_memory(path);
  } catch (const std::length_error&) { refuse_memory(path); }
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "error.ipp"
#endif
