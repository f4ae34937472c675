// SPDX-License-Identifier: Apache-2.0
// Pairs of processes that share memory until both are killed, again and again: what do they leave in /dev/shm? It is counted
// after each kill, and once more after a last start. With `communicators` they make communicators; with `names` files that have a
// name until both have opened them, as where one rank may not look at the other's descriptors: those each start sweeps.
// Prints: kills, names left by them, pairs that left one, names of all of them left at the end, processes that failed by
// themselves. Usage: killed_in_memory communicators|names KILLS SEED
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <skein/core/random.hpp>
#include <skein/gloo.hpp>

namespace sk = skein;

namespace {
enum class Share { communicators, names };

/// A file of 100,000 bytes, whose name goes when it has been written; `times` of them, or until it is killed where that is 0.
void make_names(int times) {
  for (int i = 0; times == 0 || i < times; ++i) {
    sk::comm::SharedFileText text = "";
    const int file = sk::comm::make_shared_file(text, 100000, sk::comm::OpenBy::name);
    if (file < 0 || ::posix_fallocate(file, 0, 100000) != 0) throw sk::Error("no shared file");
    sk::comm::forget_shared_file(text);
    ::close(file);
  }
}
/// Communicators, each with a segment and shared pages; `times` of them, or until it is killed where that is 0.
void work(int rank, const std::string& folder, int times) {
  for (int i = 0; times == 0 || i < times; ++i) {
    sk::GlooComm world = sk::GlooComm::from_file(folder + "/meet-" + std::to_string(i), rank, 2);
    const sk::comm::SharedPages pages = world.share(100000);
    world.all_reduce(pages.span<float>());
  }
}
pid_t start(Share what, int rank, const std::string& folder, int times) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    if (what == Share::communicators) work(rank, folder, times);
    else make_names(times);
  } catch (const std::exception& e) {
    if (times > 0) std::fprintf(stderr, "killed_in_memory: %s\n", e.what());  // else it has seen the other's end
    ::_exit(1);
  }
  ::_exit(0);
}
/// Names in /dev/shm of these processes.
int left(const std::set<int>& dead) {
  int count = 0;
  DIR* const folder = ::opendir("/dev/shm");
  while (const dirent* const e = folder ? ::readdir(folder) : nullptr) {
    unsigned long long numbers = 0;
    int pid = 0;
    if (std::sscanf(e->d_name, "skein-%llx-%d-", &numbers, &pid) == 2 && dead.count(pid)) ++count;
  }
  if (folder) ::closedir(folder);
  return count;
}
std::string new_folder() {
  char name[] = "/tmp/skein-killed-XXXXXX";
  if (!::mkdtemp(name)) throw sk::Error("no temporary folder");
  return name;
}
}  // namespace

int main(int argc, char** argv) {
  const Share what = argc > 1 && std::string(argv[1]) == "names" ? Share::names : Share::communicators;
  const long kills = argc > 2 ? std::atol(argv[2]) : 100;
  const auto seed = static_cast<std::uint64_t>(argc > 3 ? std::atol(argv[3]) : 1);
  std::set<int> dead;
  int names = 0, with = 0, wrong = 0;
  for (long k = 0; k < kills; k += 2) {
    const std::string folder = new_folder();
    const pid_t pair[] = {start(what, 0, folder, 0), start(what, 1, folder, 0)};
    const double at = 40000.0 * sk::random_uniform(seed, 0, static_cast<std::uint64_t>(k));
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<long>(at)));
    for (const pid_t p : pair) ::kill(p, SIGKILL);
    int status[2] = {};
    for (const int i : {0, 1}) ::waitpid(pair[i], &status[i], 0);
    wrong += !WIFSIGNALED(status[0]);  // the other may have ended, since it has seen the end of this one
    std::filesystem::remove_all(folder);
    dead.insert({pair[0], pair[1]});
    const int now = left({pair[0], pair[1]});
    names += now;
    with += now > 0;
  }
  const std::string folder = new_folder();
  const pid_t pair[] = {start(what, 0, folder, 1), start(what, 1, folder, 1)};
  for (const pid_t p : pair) {
    int status = 0;
    ::waitpid(p, &status, 0);
    wrong += status != 0;
  }
  std::filesystem::remove_all(folder);
  std::printf("%ld %d %d %d %d\n", kills, names, with, left(dead), wrong);
}
