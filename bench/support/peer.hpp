// SPDX-License-Identifier: Apache-2.0
// The peer: a Python child (bench/peer/*.py) driven over pipes. It is told "run N" and answers the seconds; it stands still
// (SIGSTOP, its whole process group) while we run, so that threads that wait actively cost us nothing. It gets its best: the
// variants of threads, waiting and memory layout are tried, the fastest is compared with; its malloc is always tuned.
#pragma once
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "machine.hpp"

#ifndef SKEIN_SOURCE_DIR
#define SKEIN_SOURCE_DIR "."  // compiled by hand: run it from the root of the repository
#endif

namespace bench {

/// What may be tried of the peer.
struct PeerVariant {
  int threads = 1;
  bool active = false;  ///< OpenMP threads spin while they wait
  bool channels_last = false, compile = false;
  std::string option{};  ///< one more of the script

  std::string name() const {
    return std::to_string(threads) + " OMP" + (threads > 1 ? active ? " active" : " passive" : "") +
           (channels_last ? ", channels-last" : "") + (compile ? ", torch.compile" : "") +
           (option.empty() ? "" : ", " + option.substr(2));
  }
};

class Peer {
 public:
  /// Is there a Python with PyTorch? scripts/bench says so.
  static bool available() {
    const char* python = std::getenv("SKEIN_PEER_PYTHON");
    return python && *python;
  }

  /// Starts bench/peer/SCRIPT ARGUMENTS. Throws std::runtime_error where it does not come up.
  Peer(const std::string& script, std::vector<std::string> arguments, const PeerVariant& v = {}) : name_(v.name()) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) throw std::runtime_error("peer: no pipes");
    arguments.insert(arguments.begin(), {std::getenv("SKEIN_PEER_PYTHON"), SKEIN_SOURCE_DIR "/bench/peer/" + script});
    if (v.channels_last) arguments.push_back("--channels-last");
    if (v.compile) arguments.push_back("--compile");
    if (!v.option.empty()) arguments.push_back(v.option);
    child_ = fork();
    if (child_ < 0) throw std::runtime_error("peer: cannot fork");
    if (child_ == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // a child that stands still would outlive us for ever
      bind_to(-1);
      dup2(to[0], 0);
      dup2(from[1], 1);
      for (int f : {to[0], to[1], from[0], from[1]}) close(f);
      const std::string threads = std::to_string(v.threads);
      for (const auto& [name, value] :
           std::vector<std::pair<const char*, std::string>>{{"OMP_NUM_THREADS", threads},
                                                            {"MKL_NUM_THREADS", threads},
                                                            {"OMP_WAIT_POLICY", v.active ? "active" : "passive"},
                                                            {"MALLOC_MMAP_THRESHOLD_", "1073741824"},
                                                            {"MALLOC_TRIM_THRESHOLD_", "2147483648"},
                                                            {"MALLOC_TOP_PAD_", "268435456"}})
        setenv(name, value.c_str(), 1);
      if (const char* path = std::getenv("SKEIN_PEER_LD_LIBRARY_PATH")) setenv("LD_LIBRARY_PATH", path, 1);
      std::vector<char*> argv;
      for (std::string& a : arguments) argv.push_back(a.data());
      argv.push_back(nullptr);
      execvp(argv[0], argv.data());  // a name without a slash is looked for in PATH, as scripts/bench does
      _exit(127);
    }
    setpgid(child_, child_);
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
    std::signal(SIGPIPE, SIG_IGN);
    if (read_line() != "ready") throw std::runtime_error("peer: " + script + " did not start");
    kill(-child_, SIGSTOP);
  }
  Peer(const Peer&) = delete;
  ~Peer() {
    kill(-child_, SIGKILL);
    close(to_);
    close(from_);
    waitpid(child_, nullptr, 0);
  }

  const std::string& name() const { return name_; }
  /// A request, and its answer of one line.
  std::string ask(std::string request) {
    kill(-child_, SIGCONT);
    request += '\n';
    if (write(to_, request.data(), request.size()) < 0) throw std::runtime_error("peer: has gone");
    const std::string answer = read_line();
    kill(-child_, SIGSTOP);
    if (answer.empty()) throw std::runtime_error("peer: has ended");
    return answer;
  }
  /// So many steps: seconds of wall and processor time.
  Slice run(long n) {
    Slice s;
    std::istringstream(ask("run " + std::to_string(n))) >> s.wall >> s.cpu;
    return s;
  }
  /// So many steps at the full rate, of the state as it is.
  void age(long n) { ask("age " + std::to_string(n)); }
  /// The losses of k steps from the weights that were handed over.
  std::vector<double> losses(int k) {
    std::istringstream in(ask("losses " + std::to_string(k)));
    std::vector<double> v;
    for (double d; in >> d;) v.push_back(d);
    return v;
  }

 private:
  std::string read_line() {
    std::string line;
    for (char c; read(from_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  std::string name_;
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
};

/// The fastest of the variants, or nothing where there is no peer.
inline std::unique_ptr<Peer> best_peer(const std::string& script, const std::vector<std::string>& arguments,
                                       const std::vector<PeerVariant>& variants, bool quick) {
  std::unique_ptr<Peer> best;
  double least = 1e9;
  if (!Peer::available()) {
    std::cout << "  (no peer at hand: our own figures only)" << std::endl;
    return best;
  }
  for (const PeerVariant& v : variants) {
    try {
      auto peer = std::make_unique<Peer>(script, arguments, v);
      double t = 1e9;
      const long n = count_for([&](long k) { return peer->run(k); }, 0.03);
      for (int i = 0; i < (quick ? 12 : 40); ++i) t = std::min(t, peer->run(n).wall / static_cast<double>(n));
      std::cout << "  peer with " << v.name() << ": " << 1e3 * t << " ms at best" << std::endl;
      if (t < least) least = t, best = std::move(peer);
    } catch (const std::exception& e) { std::cout << "  peer with " << v.name() << " left out: " << e.what() << std::endl; }
  }
  return best;
}

/// Variants for so many threads: with images also both layouts; not quickly also torch.compile.
inline std::vector<PeerVariant> variants(int threads, bool images, bool quick) {
  std::vector<PeerVariant> v;
  for (int t = quick ? threads : 1; t <= threads; ++t)
    for (bool active : {false, true}) {
      if (t == 1 && active) continue;
      for (bool last : {true, false})
        if (last ? images : !(quick && images)) v.push_back({t, active, last, false, {}});
    }
  if (!quick) v.push_back({threads, false, images, true, {}});
  return v;
}

}  // namespace bench
