// SPDX-License-Identifier: Apache-2.0
// What is left of a training when its process is killed, its checkpoint damaged, or its epoch cut? Each claim of
// docs/reliability.md that can be shown today, by trials, with a control that fails without the mechanism; and what saving costs.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <thread>

#include <skein/comm/control/control_comm.hpp>
#include <skein/comm/messages.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/core/random.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/data/loader.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/checkpoint.hpp>
#include <skein/train/trainer.hpp>

#include "../tests/support/file_calls.hpp"
#include "../tests/support/temporary_folder.hpp"
#include "support/bad_disks.hpp"
#include "support/commits.hpp"
#include "support/cost_of_saving.hpp"
#include "support/flipped_bits.hpp"
#include "support/mismatched_calls.hpp"
#include "support/report.hpp"

namespace {
using namespace bench;
namespace sk = skein;
namespace st = skein::train;

/// Numbers that a child counts up, and its parent reads after the child's end.
struct Counts {
  std::atomic<std::int64_t> begun{0}, committed{0}, trials{0}, wrong{0}, crashes{0}, missed{0};
};
class Shared {
 public:
  Shared() : counts_(::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (counts_ == MAP_FAILED) throw sk::Error("no shared memory");
    new (counts_) Counts;
  }
  ~Shared() { ::munmap(counts_, sizeof(Counts)); }
  Shared(const Shared&) = delete;
  Counts* operator->() { return static_cast<Counts*>(counts_); }
  Counts& operator*() { return *static_cast<Counts*>(counts_); }

 private:
  void* counts_;
};

/// In memory a commit takes a millisecond, so that kills hit all of its parts.
using Scratch = support::TemporaryFolder;

/// How a process ended: by our SIGKILL, as it wanted to, or by a fault.
enum class End { killed, done, failed };

/// A process of its own; killed after so many microseconds from its first word, or left to its end where that is negative.
template <class Work> End in_a_process(Shared& shared, double microseconds, Work&& work) {
  shared->begun = 0;
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    try {
      work();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "reliability: %s\n", e.what());
      ::_exit(3);
    }
    ::_exit(0);  // no destructors of the parent's objects
  }
  int status = 0;
  pid_t ended = 0;
  if (microseconds >= 0) {
    while (shared->begun == 0 && (ended = ::waitpid(pid, &status, WNOHANG)) == 0) std::this_thread::yield();
    if (ended == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(static_cast<long>(microseconds)));
      ::kill(pid, SIGKILL);
    }
  }
  if (ended == 0) ended = ::waitpid(pid, &status, 0);
  if (ended == pid && status == 0) return End::done;
  return ended == pid && microseconds >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? End::killed : End::failed;
}

template <class Work> double least_seconds(Work&& work) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) least = std::min(least, timed(1, work).wall);
  return least;
}

/// Trials whose process was killed, those that ended before, and those that failed by themselves.
struct Kills {
  long kills = 0, done = 0, failed = 0;
  long within = 0, lost = 0, unreadable = 0;
  /// There are to be so many kills; a few trials that fail end it.
  bool more(long wanted) const { return kills < wanted && failed < 10; }
  std::uint64_t trials() const { return static_cast<std::uint64_t>(kills + done + failed); }
  void add(End end) { ++(end == End::killed ? kills : end == End::done ? done : failed); }
};
/// A commit has begun, and its process was killed.
bool has_partial(const std::string& folder) {
  std::error_code not_made_yet;
  for (const auto& e : std::filesystem::directory_iterator(folder, not_made_yet))
    if (e.path().extension() == ".partial") return true;
  return false;
}
/// Kills while commits of so many bytes are written, each followed by a look at all that there is.
Kills kills_in_commits(const std::string& folder, std::size_t bytes, long trials, std::uint64_t seed) {
  Kills k;
  Shared shared;
  std::vector<float> values(bytes / sizeof(float));
  const double whole = least_seconds([&] { write_commit(folder, 1, values); });
  shared->committed = 1;
  while (k.more(trials)) {
    const double at = 2e6 * whole * sk::random_uniform(seed, bytes, k.trials());
    const std::int64_t last = shared->committed.load();
    k.add(in_a_process(shared, at, [&] {
      shared->begun = 1;
      for (std::int64_t step = last + 1;; ++step) {
        write_commit(folder, step, values);
        shared->committed = step;
      }
    }));
    k.within += has_partial(folder);
    std::int64_t newest = -1;
    for (const std::int64_t step : st::CommitFolder(folder).steps()) {
      if (const bool sound = is_whole(folder, step, values.size()); !sound) ++k.unreadable;
      else newest = std::max(newest, step);
    }
    k.lost += newest < shared->committed.load();
    shared->committed = std::max<std::int64_t>(newest, 1);  // a rename that its process could not tell of
  }
  return k;
}
/// The control: the same file, written over the one that there is.
Kills kills_in_place(const std::string& path, std::size_t bytes, long trials, std::uint64_t seed) {
  Kills k;
  Shared shared;
  const std::vector<char> sound = checkpoint_bytes(path, bytes);
  const double whole = least_seconds([&] { write_in_place(path, sound); });
  while (k.more(trials)) {
    const double at = 2e6 * whole * sk::random_uniform(seed, bytes, k.trials());
    k.add(in_a_process(shared, at, [&] {
      shared->begun = 1;
      while (true) write_in_place(path, sound);
    }));
    if (!opens(path, st::Verify::Whole)) ++k.lost, write_in_place(path, sound);
  }
  return k;
}

/// A training of commits of 400 kB, every third step, by a thread; counts those that have to be there.
void async_fit(const std::string& folder, int ranks, Counts& counts) {
  constexpr std::int64_t every = 3;
  struct Acknowledges {
    Counts& counts;
    void on_step_end(const st::StepRecord& r, st::FitControl&) {  // the commit before the last that has begun
      counts.committed = std::max<std::int64_t>(counts.committed, ((r.step - 1) / every - 1) * every);
    }
  };
  using Net = sk::nn::Sequential<sk::nn::Linear<128>, sk::nn::Relu, sk::nn::Linear<10>>;
  const std::vector<float> x(640 * 128, 0.5f);
  const std::vector<std::int32_t> labels(640, 1);
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    sk::Model<Net, sk::Shape<128>> model{sk::Seed{1}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 1e-4f},
                        sk::parallel::DataParallel{world, sk::parallel::Sharded<1>{}}};
    sk::FitOptions o{.epochs = 4, .batch = 32, .progress = false, .threads = 1};
    o.checkpoint = {.folder = folder, .every = every, .keep = 2, .async = true};
    if (world.rank() == 0) o.callbacks = {Acknowledges{counts}};
    trainer.fit(sk::data::from_tensors(x, sk::Extents{1, {128}}, labels), o);
  });
}
Kills kills_in_async_fits(const std::string& folder, int ranks, long trials) {
  Kills k;
  Shared shared;
  const auto anew = [&] {
    std::filesystem::remove_all(folder);
    shared->committed = 0;
  };
  End end = End::done;
  const double whole = timed(1, [&] { end = in_a_process(shared, -1, [&] { async_fit(folder, ranks, *shared); }); }).wall;
  if (end != End::done) throw sk::Error("the training that nobody kills fails");
  anew();
  while (k.more(trials)) {
    const double at = 1e6 * whole * sk::random_uniform(13, static_cast<std::uint64_t>(ranks), k.trials());
    k.add(end = in_a_process(shared, at, [&] {
            shared->begun = 1;
            async_fit(folder, ranks, *shared);
          }));
    k.within += has_partial(folder);
    std::int64_t newest = 0;
    for (const std::int64_t step : st::CommitFolder(folder).steps()) {
      if (!opens(st::CommitFolder(folder).commit(step), st::Verify::Whole)) ++k.unreadable;
      else newest = std::max(newest, step);
    }
    k.lost += newest < shared->committed.load();
    if (end != End::killed) anew();
  }
  anew();
  return k;
}

void async_kills(Report& report, const Scratch& scratch) {
  const long each = report.quick() ? 20 : 500;
  for (const int ranks : {1, 2}) {
    const Kills k = kills_in_async_fits(scratch / "async", ranks, each);
    const std::string on = std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
    report.add({.metric = "commits of .async lost or not readable, " + on,
                .ours = static_cast<double>(k.lost + k.unreadable),
                .unit = "commits",
                .must = {0.0},
                .note = std::to_string(k.kills) + " kills, " + std::to_string(k.within) + " in a commit; " +
                        std::to_string(k.done) + " trainings had ended before"});
    report.add({.metric = "trainings of .async that fail by themselves, " + on,
                .ours = static_cast<double>(k.failed),
                .unit = "trainings",
                .must = {0.0}});
  }
}

void kills(Report& report, const Scratch& scratch) {
  Kills all, in_place;
  const std::size_t sizes[] = {10'000, 100'000, 1'000'000, 10'000'000, 50'000'000};
  const long each = report.quick() ? 20 : 2000;
  for (const std::size_t bytes : sizes) {
    const std::string run = scratch / ("run" + std::to_string(bytes)), file = scratch / "file";
    const Kills k = kills_in_commits(run, bytes, each, 11), c = kills_in_place(file, bytes, std::max(10L, each / 10), 12);
    all.kills += k.kills, all.within += k.within, all.lost += k.lost, all.unreadable += k.unreadable;
    all.failed += k.failed + k.done + c.failed + c.done;
    in_place.kills += c.kills, in_place.lost += c.lost;
    std::filesystem::remove_all(run);
  }
  const std::string words =
      std::to_string(all.kills) + " kills at 10 kB to 50 MB, " + std::to_string(all.within) + " in a commit";
  report.add({.metric = "commits lost under SIGKILL",
              .ours = static_cast<double>(all.lost),
              .unit = "commits",
              .must = {0.0},
              .note = words});
  report.add({.metric = "commits that cannot be read after it",
              .ours = static_cast<double>(all.unreadable),
              .unit = "commits",
              .must = {0.0}});
  report.add({.metric = "processes that end by themselves",
              .ours = static_cast<double>(all.failed),
              .unit = "processes",
              .must = {0.0}});
  report.add({.metric = "control: checkpoints lost by writing in place",
              .ours = static_cast<double>(in_place.lost),
              .unit = "checkpoints",
              .must = {.bound = 1.0, .at_least = true},
              .note = std::to_string(in_place.kills) + " kills"});
}

void damage(Report& report, const Scratch& scratch) {
  const std::string path = scratch / "damaged";
  const std::vector<char> sound = checkpoint_bytes(path, 200'000);
  const long stride = report.quick() ? 101 : 1;  // prime to 8: every place in a byte
  Shared bits, cuts;
  const auto trial = [&](Shared& counts, bool control) {
    ++counts->trials;
    try {
      if (opens(path, st::Verify::Whole)) ++counts->wrong;
      if (control && opens(path, st::Verify::Table)) ++counts->missed;
    } catch (const std::exception&) { ++counts->crashes; }
  };
  const End end_bits = in_a_process(bits, -1, [&] {
    const int file = ::open(path.c_str(), O_WRONLY);
    for (long bit = 0; bit < 8 * static_cast<long>(sound.size()); bit += stride) {
      const char before = sound[static_cast<std::size_t>(bit / 8)], after = static_cast<char>(before ^ (1 << bit % 8));
      if (::pwrite(file, &after, 1, bit / 8) != 1) ::_exit(4);
      trial(bits, true);
      if (::pwrite(file, &before, 1, bit / 8) != 1) ::_exit(4);
    }
  });
  const End end_cuts = in_a_process(cuts, -1, [&] {
    for (long length = static_cast<long>(sound.size()) - 1; length >= 0; length -= report.quick() ? 100 : 1) {
      if (::truncate(path.c_str(), length) != 0) ::_exit(4);
      trial(cuts, false);
    }
  });
  const auto words = [&](const char* what, Shared& c) {
    return std::to_string(c->trials.load()) + what + std::to_string(sound.size()) + " bytes";
  };
  report.add({.metric = "flipped bits that are not detected",
              .ours = static_cast<double>(bits->wrong.load()),
              .unit = "bits",
              .must = {0.0},
              .note = words(" bits of ", bits)});
  report.add({.metric = "control: the same, without the hashes of the sections",
              .ours = static_cast<double>(bits->missed.load()),
              .unit = "bits",
              .must = {.bound = 1.0, .at_least = true}});
  report.add({.metric = "cuts that are not detected",
              .ours = static_cast<double>(cuts->wrong.load()),
              .unit = "lengths",
              .must = {0.0},
              .note = words(" lengths of ", cuts)});
  report.add({.metric = "crashes and errors of other types",
              .ours = static_cast<double>(bits->crashes.load() + cuts->crashes.load() + (end_bits != End::done) +
                                          (end_cuts != End::done)),
              .unit = "crashes",
              .must = {0.0}});
}

/// What all ranks' loaders serve of an epoch from `from` to before `to`: how often each sample.
void serve(const sk::data::DatasetView& set, sk::data::LoaderOptions options, int ranks, std::int64_t epoch, std::int64_t from,
           std::int64_t to, std::vector<int>& times) {
  options.ranks = ranks;
  for (options.rank = 0; options.rank < ranks; ++options.rank) {
    sk::data::Loader<float> loader(set, options);
    if (from >= loader.steps()) continue;
    loader.seek({epoch, from});
    std::int64_t step = from;
    for (const auto& batch : loader.epoch(epoch)) {
      if (step++ == to) break;
      for (long i = 0; i < batch.count; ++i) ++times[static_cast<std::size_t>(batch.indices[i])];
    }
  }
}

void resumes(Report& report) {
  const long trials = report.quick() ? 1000 : 100'000;
  long wrong = 0, control = 0, cut = 0;
  for (long t = 0; t < trials; ++t) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) {
      return static_cast<long>(sk::random_below(5, static_cast<std::uint64_t>(t), draw++, n));
    };
    const long n = 1 + below(300), epoch = below(4);
    const std::vector<float> x(static_cast<std::size_t>(n));
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
    const auto set = sk::data::from_tensors(x, sk::Extents{1, {1}}, labels);
    sk::data::LoaderOptions o{.batch = 8 + below(60), .prefetch = sk::data::Prefetch::off};
    o.shuffle = below(8) > 0;
    o.seed = sk::Seed{static_cast<std::uint64_t>(below(1 << 30))};
    const int before = 1 + static_cast<int>(below(6)), after = below(2) > 0 ? before : 1 + static_cast<int>(below(6));
    const long steps = (n + o.batch - 1) / o.batch, killed = below(static_cast<std::uint64_t>(steps) + 1);
    std::vector<int> times(static_cast<std::size_t>(n)), anew;
    serve(set, o, before, epoch, 0, killed, times);
    anew = times;
    serve(set, o, after, epoch, killed, -1, times);
    const std::vector<int> once(static_cast<std::size_t>(n), 1);
    wrong += times != once;
    if (killed == 0) continue;
    ++cut;
    serve(set, o, after, epoch, 0, -1, anew);
    control += anew != once;
  }
  report.add({.metric = "epochs that serve a sample twice or never after a resume",
              .ours = static_cast<double>(wrong),
              .unit = "epochs",
              .must = {0.0},
              .note = std::to_string(trials) + " configurations of samples, batch, seed, step, 1 to 6 ranks before and after"});
  report.add({.metric = "control: the same, where the position is not kept",
              .ours = static_cast<double>(control),
              .unit = "epochs",
              .must = {.bound = 1.0, .at_least = true},
              .note = std::to_string(cut) + " epochs were cut after their first step"});
}
/// Bits of weights that flip on one rank.
void flipped(Report& report) {
  const long trials = report.quick() ? 50 : 500;
  long missed = 0, late = 0, alarms = 0;
  for (long t = 0; t < trials; ++t) {
    const FlippedBit bit(static_cast<std::uint64_t>(t), t % 2 ? 3 : 4);
    missed += !bit.named_by(bit.said());
    if (t >= trials / 10) continue;
    late += !bit.named_by(bit.said(true, 0));
    alarms += !bit.said(false).empty();
  }
  report.add({.metric = "flipped bits of weights that are not found after their step and named",
              .ours = static_cast<double>(missed),
              .unit = "bits",
              .must = {0.0},
              .note = std::to_string(trials) + " bits: parameter and rank, of 3 and 4 ranks"});
  report.add({.metric = "fits without a flipped bit that are stopped",
              .ours = static_cast<double>(alarms),
              .unit = "fits",
              .must = {0.0},
              .note = std::to_string(trials / 10) + " fits"});
  report.add({.metric = "control: flipped bits not found after their step without .check",
              .ours = static_cast<double>(late),
              .unit = "bits",
              .must = {.bound = 1.0, .at_least = true},
              .note = "of " + std::to_string(trials / 10) + ", which the end of fit finds"});
}

/// Collectives that do not match: the seconds until the last rank knows of the slowest. Those of processes are in
/// tests/distributed/mismatched_calls.cpp, SKEIN_ALL_CASES=1.
double mismatches(Report& report) {
  const auto spawn = [](int n, auto&& f) {
    sk::CommOptions o;
    o.deadline = 20;
    sk::spawn(n, f, o);
  };
  long cases = 0, wrong = 0;
  double slowest = 0;
  const auto look = [&](const ToldOfMismatch& told, const MismatchedCalls& c) {
    const std::string fault = told.fault(c, 1e9);
    if (!fault.empty()) std::fprintf(stderr, "%s\n", fault.c_str());
    ++cases;
    wrong += !fault.empty();
    slowest = std::max(slowest, told.seconds);
  };
  for (const int ranks : {2, 3, 4})
    for (const MismatchedCalls& c : MismatchedCalls::all(ranks)) {
      look(told_of(c, spawn, [](sk::ThreadComm& t) -> sk::ThreadComm& { return t; }), c);
      look(told_of(c, spawn, [](sk::ThreadComm& t) { return sk::ControlComm::over(t, 20); }), c);
    }
  report.add({.metric = "collectives that do not match and are not named, the same on all ranks",
              .ours = static_cast<double>(wrong),
              .unit = "cases",
              .must = {0.0},
              .note = std::to_string(cases) + " cases over ThreadComm and ControlComm"});
  return slowest;
}
}  // namespace

int main(int argc, char** argv) {
  Report report("reliability", options(argc, argv));
  const Scratch scratch(support::Where::memory);
  kills(report, scratch);
  async_kills(report, scratch);
  disk_errors(report, scratch.path());
  crashes(report, scratch.path());
  damage(report, scratch);
  resumes(report);
  flipped(report);
  const double slowest = mismatches(report);
  const bool right = report.holds();  // trials are right or wrong on a busy machine too; times are not
  report.add(
      {.metric = "seconds until the last rank knows", .ours = slowest, .unit = "s", .must = {1.0}, .note = "the slowest case"});
  cost_of_saving(report);
  return report.finish(right);
}
