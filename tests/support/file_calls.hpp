// SPDX-License-Identifier: Apache-2.0
// What a program tells the disk: open, write, fsync, rename and the like are defined here, above the system calls, so that a test
// can make the n-th of them fail, or have a record of all. It holds for the whole program that has a source which includes it.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace support {

enum class FileCall { open, write, sync, rename, exchange, make_folder, unlink, remove_folder, truncate, lock, list };

/// A call that has succeeded. Files have numbers, which stay theirs when they are renamed.
struct FileOperation {
  enum class Kind { create, write, truncate, sync_file, sync_folder, rename, exchange, make_folder, unlink, remove_folder, mark };
  Kind kind;
  std::string path{}, to{};  ///< where the kind has them
  int file = 0;              ///< of create, write, truncate, sync_file; of mark: its number
  long long offset = 0;      ///< of write; of truncate: the length
  std::string bytes{};       ///< of write
};

/// Of the calls on what is below a folder; all others go through.
class FileCalls {
 public:
  static FileCalls& all() {
    static FileCalls one;
    return one;
  }
  /// From now on the n-th call, from 1, fails with an error; `lasting`: those after it too. Error 0: a write takes half. A call
  /// that cannot fail so goes through.
  void fail(const std::string& folder, long n, int error, bool lasting = false) {
    begin(folder);
    fail_at_ = n, error_ = error, lasting_ = lasting;
  }
  /// The file system cannot exchange two names.
  void without_exchange(bool without) { without_exchange_ = without; }
  void record(const std::string& folder) {
    begin(folder);
    recording_ = true;
  }
  /// Something of the program's own, among the operations.
  void mark(int number) {
    const std::lock_guard lock(mutex_);
    if (recording_) operations_.push_back({.kind = FileOperation::Kind::mark, .file = number});
  }
  /// All go through again. Returns what was recorded.
  std::vector<FileOperation> end() {
    const std::lock_guard lock(mutex_);
    active_ = recording_ = false;
    fail_at_ = 0;
    handles_.clear(), numbers_.clear();
    return std::exchange(operations_, {});
  }
  long count() const { return count_; }    ///< since fail() or record()
  bool failed() const { return failed_; }  ///< a call has

  /// For the definitions below: calls `call`, unless it is one that fails.
  template <class Call, class Done> long run(FileCall kind, std::string_view path, Call&& call, Done&& done) {
    if (!active_ || !path.starts_with(folder_)) return call();
    const std::lock_guard lock(mutex_);
    if (fails(kind)) {
      errno = kind == FileCall::exchange && without_exchange_ ? EINVAL : error_;
      return -1;
    }
    const long result = call();
    const int error = errno;
    if (result >= 0 && active_) done(result);
    errno = error;
    return result;
  }
  std::string path_of(int handle) {
    if (!active_) return {};
    const std::lock_guard lock(mutex_);
    const auto found = handles_.find(handle);
    return found == handles_.end() ? std::string() : found->second;
  }
  bool halves() const { return halves_; }  ///< the write that is made now
  void opened(int handle, const char* path, bool is_new) {
    handles_[handle] = path;
    struct stat facts {};
    if (!recording_ || ::fstat(handle, &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    int& number = numbers_[facts.st_ino];
    if (is_new || number == 0) number = ++last_number_;
    if (is_new) operations_.push_back({.kind = FileOperation::Kind::create, .path = path, .file = number});
  }
  void add(FileOperation operation, int handle = -1) {
    if (!recording_) return;
    struct stat facts {};
    if (handle >= 0 && ::fstat(handle, &facts) == 0) {
      operation.file = numbers_[facts.st_ino];
      if (S_ISDIR(facts.st_mode)) operation.kind = FileOperation::Kind::sync_folder;
    }
    operations_.push_back(std::move(operation));
  }

 private:
  void begin(const std::string& folder) {
    end();
    const std::lock_guard lock(mutex_);
    folder_ = folder;
    count_ = last_number_ = 0;
    failed_ = halves_ = false;
    active_ = true;
  }
  bool fails(FileCall kind) {
    const long n = ++count_;
    halves_ = false;
    if (kind == FileCall::exchange && without_exchange_) return true;
    if (fail_at_ == 0 || n < fail_at_ || (n > fail_at_ && !lasting_)) return false;
    const bool data = kind == FileCall::write || kind == FileCall::sync || kind == FileCall::truncate;
    if (error_ == EINTR && !data && kind != FileCall::lock) return false;
    if (error_ == 0) {
      halves_ = kind == FileCall::write;
      failed_ = failed_ || halves_;
      return false;
    }
    return failed_ = true;
  }

  std::atomic<bool> active_{false};
  bool recording_ = false, lasting_ = false, without_exchange_ = false;
  std::atomic<bool> failed_{false}, halves_{false};
  int error_ = 0, last_number_ = 0;
  long fail_at_ = 0;
  std::atomic<long> count_{0};
  std::string folder_;
  std::mutex mutex_;
  std::map<int, std::string> handles_;
  std::map<ino_t, int> numbers_;
  std::vector<FileOperation> operations_;
};

}  // namespace support

extern "C" {

inline int skein_test_open(const char* path, int flags, mode_t mode) {
  auto& calls = support::FileCalls::all();
  bool is_new = false;
  return static_cast<int>(calls.run(
      support::FileCall::open, path,
      [&] {
        struct stat facts {};
        is_new = (flags & O_CREAT) != 0 && ::lstat(path, &facts) != 0;
        return ::syscall(SYS_openat, AT_FDCWD, path, flags, mode);
      },
      [&](long handle) { calls.opened(static_cast<int>(handle), path, is_new); }));
}
__attribute__((weak)) int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  return skein_test_open(path, flags, mode);
}
__attribute__((weak)) ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  auto& calls = support::FileCalls::all();
  const std::string path = calls.path_of(file);
  return calls.run(
      support::FileCall::write, path,
      [&] { return ::syscall(SYS_pwrite64, file, bytes, calls.halves() && count > 1 ? count / 2 : count, offset); },
      [&](long n) {
        calls.add({.kind = support::FileOperation::Kind::write,
                   .offset = offset,
                   .bytes = std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(n))},
                  file);
      });
}
__attribute__((weak)) ssize_t write(int file, const void* bytes, size_t count) {
  if (support::FileCalls::all().path_of(file).empty()) return ::syscall(SYS_write, file, bytes, count);
  const off_t at = ::lseek(file, 0, SEEK_CUR);
  const ssize_t n = pwrite(file, bytes, count, at);
  if (n > 0) ::lseek(file, at + n, SEEK_SET);
  return n;
}
__attribute__((weak)) int fsync(int file) {
  auto& calls = support::FileCalls::all();
  const std::string path = calls.path_of(file);
  return static_cast<int>(calls.run(
      support::FileCall::sync, path, [&] { return ::syscall(SYS_fsync, file); },
      [&](long) { calls.add({.kind = support::FileOperation::Kind::sync_file, .path = path}, file); }));
}
__attribute__((weak)) int ftruncate(int file, off_t length) noexcept {
  auto& calls = support::FileCalls::all();
  const std::string path = calls.path_of(file);
  return static_cast<int>(calls.run(
      support::FileCall::truncate, path, [&] { return ::syscall(SYS_ftruncate, file, length); },
      [&](long) { calls.add({.kind = support::FileOperation::Kind::truncate, .offset = length}, file); }));
}
__attribute__((weak)) int flock(int file, int operation) noexcept {
  auto& calls = support::FileCalls::all();
  return static_cast<int>(calls.run(
      support::FileCall::lock, calls.path_of(file), [&] { return ::syscall(SYS_flock, file, operation); }, [](long) {}));
}
__attribute__((weak)) DIR* opendir(const char* path) {
  static const auto next = reinterpret_cast<DIR* (*)(const char*)>(::dlsym(RTLD_NEXT, "opendir"));
  const long folder = support::FileCalls::all().run(
      support::FileCall::list, path, [&] { return reinterpret_cast<long>(next(path)); }, [](long) {});
  return folder == -1 ? nullptr : reinterpret_cast<DIR*>(folder);
}
__attribute__((weak)) dirent* readdir(DIR* folder) {
  static const auto next = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  const int error = errno;
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(::dirfd(folder));
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  errno = error;
  const long entry = support::FileCalls::all().run(
      support::FileCall::list, std::string_view(path, length > 0 ? static_cast<std::size_t>(length) : 0),
      [&] { return reinterpret_cast<long>(next(folder)); }, [](long) {});
  return entry == -1 ? nullptr : reinterpret_cast<dirent*>(entry);
}
__attribute__((weak)) int renameat2(int, const char* from, int, const char* to, unsigned flags) noexcept {
  auto& calls = support::FileCalls::all();
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  using Kind = support::FileOperation::Kind;
  return static_cast<int>(calls.run(
      exchange ? support::FileCall::exchange : support::FileCall::rename, from,
      [&] { return ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags); },
      [&](long) { calls.add({.kind = exchange ? Kind::exchange : Kind::rename, .path = from, .to = to}); }));
}
__attribute__((weak)) int rename(const char* from, const char* to) noexcept { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
__attribute__((weak)) int mkdir(const char* path, mode_t mode) noexcept {
  auto& calls = support::FileCalls::all();
  return static_cast<int>(calls.run(
      support::FileCall::make_folder, path, [&] { return ::syscall(SYS_mkdirat, AT_FDCWD, path, mode); },
      [&](long) { calls.add({.kind = support::FileOperation::Kind::make_folder, .path = path}); }));
}
__attribute__((weak)) int unlink(const char* path) noexcept {
  auto& calls = support::FileCalls::all();
  return static_cast<int>(calls.run(
      support::FileCall::unlink, path, [&] { return ::syscall(SYS_unlinkat, AT_FDCWD, path, 0); },
      [&](long) { calls.add({.kind = support::FileOperation::Kind::unlink, .path = path}); }));
}
__attribute__((weak)) int rmdir(const char* path) noexcept {
  auto& calls = support::FileCalls::all();
  return static_cast<int>(calls.run(
      support::FileCall::remove_folder, path, [&] { return ::syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR); },
      [&](long) { calls.add({.kind = support::FileOperation::Kind::remove_folder, .path = path}); }));
}

}  // extern "C"
