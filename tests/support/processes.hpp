// SPDX-License-Identifier: Apache-2.0
// Ranks that are real processes, without MPI: forks of the test program, each of which hands a line of text back. A child that
// does not end within its time is killed and says so.
#pragma once
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace support {

struct Child {
  pid_t pid = -1;
  int from = -1;
};

/// What is `say(rank)` in a process of its own; an exception's text otherwise.
inline Child start_process(const std::function<std::string()>& say) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    std::string text;
    try {
      text = say();
    } catch (const std::exception& e) { text = e.what(); }
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);  // no destructors of the parent's objects
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

/// Its line, and its end. "killed" where it took longer; "signal 11" or "exit code 1" where it ended so without a word.
inline std::string wait_for(Child c, double seconds = 30) {
  std::string text;
  while (true) {
    pollfd p{c.from, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(1000 * seconds)) <= 0) {
      if (c.pid > 0) ::kill(c.pid, SIGKILL);
      text = "killed";
      break;
    }
    char some[4096];
    const ssize_t n = ::read(c.from, some, sizeof some);
    if (n <= 0) break;
    text.append(some, static_cast<std::size_t>(n));
  }
  ::close(c.from);
  int status = 0;
  if (::waitpid(c.pid, &status, 0) < 0 || status == 0 || !text.empty()) return text;
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "exit code " + std::to_string(WEXITSTATUS(status));
}

/// What each of n ranks says.
inline std::vector<std::string> run_processes(int n, const std::function<std::string(int)>& say, double seconds = 30) {
  std::vector<Child> children;
  for (int r = 0; r < n; ++r) children.push_back(start_process([&] { return say(r); }));
  std::vector<std::string> texts;
  for (const Child& c : children) texts.push_back(wait_for(c, seconds));
  return texts;
}

/// Stops these processes together, for so long, from 50 ms after the call, which returns when they run again.
inline void stop_together(const std::vector<pid_t>& processes, double seconds = 5) {
  ::usleep(50000);
  const auto tell = [&](int signal) {
    for (const pid_t p : processes)
      if (p > 0) ::kill(p, signal);  // -1, of a process that could not be started, is all that there are
  };
  tell(SIGSTOP);
  ::usleep(static_cast<useconds_t>(1e6 * seconds));
  tell(SIGCONT);
}

/// Does so with all ranks of a communicator of processes, for five seconds. They make one together, and go on at once.
class StopsAll {
 public:
  template <class Comm> explicit StopsAll(Comm& world) {
    const std::vector<pid_t> ranks = world.all_gather(::getpid());
    world.barrier();
    if (world.rank() == 0) child_ = start_process([ranks] { return stop_together(ranks), std::string("let run"); });
  }
  /// "let run", when they do.
  std::string end() { return child_ ? wait_for(*child_) : "let run"; }

 private:
  std::optional<Child> child_;  // of rank 0
};

}  // namespace support
