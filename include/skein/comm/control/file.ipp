// SPDX-License-Identifier: Apache-2.0
// The bodies of file.hpp.
#pragma once
#include "file.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE std::string to_text(const MeetingFile& m) {
  std::string text = "skein meeting 1\nnonce " + std::to_string(m.nonce) + "\ntime " + std::to_string(m.time) + "\nsize " +
                     std::to_string(m.size) + "\n";
  for (const Address& a : m.addresses) text += "at " + a.text() + "\n";
  return text + "end\n";
}

SKEIN_INLINE MeetingFile parse_meeting(const std::string& text, const std::string& path) {
  const auto refuse = [&](const std::string& why) { return FileError(path, -1, "is no meeting of ranks: " + why); };
  if (text.size() > 16384) throw refuse("it is longer than 16 kB");
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || line != "skein meeting 1") throw refuse("its first line is not 'skein meeting 1'");
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
  m.nonce = number("nonce", ~0ull);
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

SKEIN_INLINE std::unique_ptr<Client> meet_in_file(const std::string& path, RankPlace place, long long started) {
  check_place(place);
  if (place.rank == 0) {
    const Listener listener({"0.0.0.0", 0});
    MeetingFile m;
    std::random_device random;
    m.nonce = (static_cast<std::uint64_t>(random()) << 32 | random()) ^ place.key;
    m.time = unix_seconds();
    m.size = place.size;
    for (const std::string& host : own_hosts()) m.addresses.push_back({host, listener.port()});
    const std::string beside = path + "." + std::to_string(::getpid()) + ".new";
    {
      std::ofstream out(beside, std::ios::binary | std::ios::trunc);
      out << to_text(m) << std::flush;
      if (!out) throw FileError(beside, -1, "could not be written: " + std::string(std::strerror(errno)));
    }
    if (std::rename(beside.c_str(), path.c_str()) != 0) {
      const int why = errno;
      (void)std::remove(beside.c_str());
      throw FileError(path, -1, "could not be written: " + std::string(std::strerror(why)));
    }
    struct Remove {
      const std::string& path;
      ~Remove() { (void)std::remove(path.c_str()); }
    } const remove{path};
    place.key = m.nonce ^ place.key;
    return serve_at(listener, place, path);
  }
  // Others read it anew in each round. The key is the file's, so that a coordinator of another run refuses it.
  const auto tries = [&](std::string& why) {
    std::vector<Try> all;
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      if (why == "nothing is there") why = "the file is not there";
      return all;
    }
    std::string text(16385, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    try {
      const MeetingFile m = parse_meeting(text, path);
      // Who wrote it has given up by now, or has met its ranks.
      if (const long long age = started - m.time; static_cast<double>(age) > place.deadline + 5)
        why = "the file was written " + std::to_string(age) +
              " s before this rank started: an earlier run left it, and rank 0 of this one wrote no other";
      else
        for (const Address& a : m.addresses) all.push_back({a, m.nonce ^ place.key});
    } catch (const FileError& e) { why = e.what(); }
    return all;
  };
  return join_at(tries, place, path);
}

}  // namespace skein::inline SKEIN_ABI::comm::control
