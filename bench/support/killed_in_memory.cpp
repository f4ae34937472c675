// SPDX-License-Identifier: Apache-2.0
// Pairs of processes that make communicators in shared memory until both are killed, again and again: what do they leave in
// /dev/shm? Each start sweeps what dead processes have left, so it is counted after each kill, and once more after a last start.
// Prints: kills, names left by them, pairs that left one, names of all of them left at the end, processes that failed by
// themselves. Usage: killed_in_memory KILLS SEED
#include <dirent.h>
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
/// Communicators, each with a segment and shared pages; `times` of them, or until it is killed where that is 0.
void work(int rank, const std::string& folder, int times) {
  for (int i = 0; times == 0 || i < times; ++i) {
    sk::GlooComm world = sk::GlooComm::from_file(folder + "/meet-" + std::to_string(i), rank, 2);
    const sk::comm::SharedPages pages = world.share(100000);
    world.all_reduce(pages.span<float>());
  }
}
pid_t start(int rank, const std::string& folder, int times) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    work(rank, folder, times);
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
  const long kills = argc > 1 ? std::atol(argv[1]) : 100;
  const auto seed = static_cast<std::uint64_t>(argc > 2 ? std::atol(argv[2]) : 1);
  std::set<int> dead;
  int names = 0, with = 0, wrong = 0;
  for (long k = 0; k < kills; k += 2) {
    const std::string folder = new_folder();
    const pid_t pair[] = {start(0, folder, 0), start(1, folder, 0)};
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
  const pid_t pair[] = {start(0, folder, 1), start(1, folder, 1)};
  for (const pid_t p : pair) {
    int status = 0;
    ::waitpid(p, &status, 0);
    wrong += status != 0;
  }
  std::filesystem::remove_all(folder);
  std::printf("%ld %d %d %d %d\n", kills, names, with, left(dead), wrong);
}
