// SPDX-License-Identifier: Apache-2.0
// The bodies of file.hpp.
#pragma once
#include <sys/stat.h>

#include <cstdio>
#include <sstream>

#include "file.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE std::string to_text(const MeetingFile& m) {
  std::string text = skein::text("skein meeting 2\nsecret {}\ntime {}\nsize {}\n", to_hex(m.secret), m.time, m.size);
  for (const Address& a : m.addresses) text += "at " + a.text() + "\n";
  return text + "end\n";
}

SKEIN_INLINE MeetingFile parse_meeting(const std::string& text, const std::string& path) {
  const auto refuse = [&](const std::string& why) { return FileError(path, -1, "is no meeting of ranks: " + why); };
  if (text.size() > 16384) throw refuse("it is longer than 16 kB");
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || line != "skein meeting 2") throw refuse("its first line is not 'skein meeting 2'");
  MeetingFile m;
  const auto number = [&](const char* name, unsigned long long most) {
    unsigned long long n = 0;
    if (!std::getline(in, line) || line.rfind(std::string(name) + " ", 0) != 0)
      throw refuse(std::string("the line '") + name + "' is missing");
    const std::string digits = line.substr(std::strlen(name) + 1);
    if (digits.empty() || digits.size() > 20 || digits.find_first_not_of("0123456789") != std::string::npos)
      throw refuse("'" + line.substr(0, 60) + "' holds no number");
    errno = 0;
    n = std::strtoull(digits.c_str(), nullptr, 10);
    if (errno != 0 || n > most) throw refuse("'" + line.substr(0, 60) + "' is too large");
    return n;
  };
  if (!std::getline(in, line) || line.rfind("secret ", 0) != 0 || !from_hex(std::string_view(line).substr(7), m.secret))
    throw refuse("the line 'secret', with 32 hexadecimal digits, is missing");
  m.time = static_cast<long long>(number("time", 1ull << 40));
  m.size = static_cast<int>(number("size", 1u << 24));
  bool ended = false;
  while (!ended && std::getline(in, line)) {
    if (line == "end") ended = true;
    else if (line.rfind("at ", 0) == 0 && m.addresses.size() < 64) {
      try {
        m.addresses.push_back(parse_address(line.substr(3)));
      } catch (const ArgumentError& e) { throw refuse(e.what()); }
    } else throw refuse("it has a line '" + line.substr(0, 60) + "'");
  }
  if (!ended || !text.ends_with("\nend\n") || in.peek() != std::char_traits<char>::eof())
    throw refuse("its end is missing, or something follows it");
  if (m.addresses.empty()) throw refuse("it names no address");
  return m;
}

SKEIN_INLINE long long unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

namespace detail {
inline std::string owner_text(const struct stat& s) {
  return skein::text("belongs to uid {}, and this program runs as uid {}", s.st_uid, ::geteuid());
}
inline bool is_own_alone(const struct stat& s) { return s.st_uid == ::geteuid() && (s.st_mode & 077) == 0; }
}  // namespace detail

SKEIN_INLINE void write_meeting(const std::string& path, const MeetingFile& m) {
  struct stat s {};
  if (::lstat(path.c_str(), &s) == 0 && s.st_uid != ::geteuid())
    throw FileError(path, -1, detail::owner_text(s) + ": ranks meet in no file of another user; take another path");
  const std::string beside = skein::text("{}.{}.new", path, ::getpid()), text = to_text(m);
  (void)::unlink(beside.c_str());
  const Descriptor out(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const bool written = out && ::write(out.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && std::rename(beside.c_str(), path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  if (out) (void)::unlink(beside.c_str());
  throw FileError(written ? path : beside, -1, "could not be written: " + why);
}

SKEIN_INLINE std::optional<MeetingFile> read_meeting(const std::string& path, std::string& why) {
  const Descriptor in(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!in && errno == ELOOP) throw FileError(path, -1, "is a symbolic link: ranks meet in a file, and rank 0 makes it");
  struct stat s {};
  if (!in && errno == EACCES && ::lstat(path.c_str(), &s) == 0 && s.st_uid != ::geteuid())
    throw FileError(path, -1, detail::owner_text(s) + ": it is not rank 0's");
  if (!in) {
    if (errno != ENOENT) why = std::strerror(errno);
    else if (why == "nothing is there") why = "the file is not there";
    return std::nullopt;
  }
  if (::fstat(in.get(), &s) != 0 || s.st_uid != ::geteuid())
    throw FileError(path, -1, detail::owner_text(s) + ": it is not rank 0's");
  if (!S_ISREG(s.st_mode) || (s.st_mode & 077) != 0) {
    why = S_ISREG(s.st_mode) ? "others may read or write the file: it is not one that rank 0 writes" : "it is no file";
    return std::nullopt;
  }
  std::string text(16385, '\0');
  std::size_t n = 0;
  for (ssize_t got = 1; got > 0 && n < text.size(); n += static_cast<std::size_t>(std::max<ssize_t>(got, 0)))
    got = ::read(in.get(), text.data() + n, text.size() - n);
  text.resize(n);
  try {
    return parse_meeting(text, path);
  } catch (const FileError& e) { why = e.what(); }
  return std::nullopt;
}

SKEIN_INLINE bool is_private_folder(const std::string& folder) {
  struct stat s {};
  return ::lstat(folder.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && detail::is_own_alone(s);
}

SKEIN_INLINE void make_private_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw FileError(folder, -1, "could not be made", errno);
  struct stat s {};
  if (::lstat(folder.c_str(), &s) != 0) throw FileError(folder, -1, std::strerror(errno));
  if (!S_ISDIR(s.st_mode)) throw FileError(folder, -1, "is no folder: ranks of this machine meet in it");
  if (s.st_uid != ::geteuid())
    throw FileError(folder, -1,
                    detail::owner_text(s) + ": ranks of this machine would meet in it; set TMPDIR to a folder of yours");
  if (!detail::is_own_alone(s)) throw FileError(folder, -1, "may be entered by others: chmod 700 it, since ranks meet in it");
}

SKEIN_INLINE std::unique_ptr<Client> meet_in_file(const std::string& path, RankPlace place, long long started) {
  check_place(place);
  if (place.rank == 0) {
    const Listener listener({place.one_machine ? "127.0.0.1" : "0.0.0.0", 0});
    MeetingFile m{random_nonce(), unix_seconds(), place.size, {}};
    if (place.one_machine) m.addresses.push_back({listener.interface(), listener.port()});
    else
      for (const std::string& host : own_hosts()) m.addresses.push_back({host, listener.port()});
    write_meeting(path, m);
    struct Remove {
      const std::string& path;
      ~Remove() { (void)std::remove(path.c_str()); }
    } const remove{path};
    place.key = with_secret(place.key, m.secret);
    return serve_at(listener, place, path);
  }
  // Others read it anew in each round. The key is the file's, so that a coordinator of another run refuses it.
  const auto tries = [&](std::string& why) {
    std::vector<Try> all;
    const std::optional<MeetingFile> m = read_meeting(path, why);
    if (!m) return all;
    // Who wrote it has given up by now, or has met its ranks.
    if (const long long age = started - m->time; static_cast<double>(age) > place.deadline + 5)
      why = skein::text(
          "the file was written {} s before this rank started: an earlier run left it, and rank 0 of this one wrote no other",
          age);
    else
      for (const Address& a : m->addresses) all.push_back({a, with_secret(place.key, m->secret)});
    return all;
  };
  return join_at(tries, place, path);
}

}  // namespace skein::inline SKEIN_ABI::comm::control

SKEIN_END_COLD
