// SPDX-License-Identifier: Apache-2.0
// Commits on disks that fail: an error at each operation of a commit, and what a crash leaves at each.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <skein/comm/thread/spawn.hpp>
#include <skein/core/atomic_file.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/checkpoint_reader.hpp>
#include <skein/train/checkpoint_writer.hpp>
#include <skein/train/commit_folder.hpp>
#include <skein/train/trainer.hpp>

#include "../support/commit_trials.hpp"
#include "../support/disk_fault_trials.hpp"
#include "../support/file_calls.hpp"
#include "../support/said.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace st = skein::train;

namespace {
struct Scratch : support::TemporaryFolder {
  Scratch() : TemporaryFolder(support::Where::memory) {}
  ~Scratch() { support::FileCalls::all().end(); }
};

using Names = std::vector<std::string>;
Names names_in(const std::string& path) {
  Names names;
  for (const auto& e : std::filesystem::directory_iterator(path)) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
}  // namespace

TEST_CASE("an error at any operation of a commit or a save leaves what there was, and the next one sweeps up", "[train]") {
  const Scratch scratch;
  const support::TemporaryFolder words;
  support::FaultTrials t;
  const std::string said = support::said(words, [&] {
    for (const int ranks : {1, 2}) {
      t += support::faults_in_commits(scratch.path(), ranks, 30);
      t += support::faults_in_commits(scratch.path(), ranks, 20);
      t += support::faults_in_commits(scratch.path(), ranks, 20, false);
    }
    t += support::faults_in_saves(scratch.path());
  });
  CHECK(t.trials > 400);
  CHECK(t.lost == 0);
  CHECK(t.mute == 0);
  CHECK(t.left == 0);
  CHECK_THAT(said, !Catch::Contains("without locks"));
}

namespace {
using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<9>, sk::nn::Tanh, sk::nn::Linear<3>>, sk::Shape<5>>;
/// A fit of six steps; what each rank threw, and the weights where none did.
struct Fitted {
  Names errors;
  std::vector<float> weights;
};
Fitted fit(const std::string& folder, int ranks, bool async) {
  static const std::vector<float> x(48 * 5, 0.5f);
  static const std::vector<std::int32_t> labels(48, 1);
  Fitted fitted{Names(static_cast<std::size_t>(ranks)), {}};
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    try {
      Model model{sk::Seed{3}};
      sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}, sk::parallel::DataParallel{world}};
      sk::FitOptions o{.epochs = 2, .batch = 16, .progress = false, .threads = 1};
      o.checkpoint = {.folder = folder, .every = 2, .keep = 2, .async = async};
      trainer.fit(sk::data::from_tensors(x, sk::Extents{1, {5}}, labels), o);
      if (rank == 0) fitted.weights.assign(model.parameters().begin(), model.parameters().end());
    } catch (const sk::Error& e) { fitted.errors[rank] = e.what(); }
  });
  return fitted;
}
}  // namespace

TEST_CASE("where one rank cannot write, all say why, and the program that is started again goes on", "[train]") {
  const Scratch scratch;
  const std::string run = scratch / "run";
  support::FileCalls& calls = support::FileCalls::all();
  long failed = 0, later = 0;
  for (const auto& [ranks, async] : {std::pair{1, false}, {1, true}, {2, false}, {2, true}}) {
    std::filesystem::remove_all(run);
    const Fitted whole = fit(run, ranks, async);
    REQUIRE(whole.errors == Names(static_cast<std::size_t>(ranks)));
    const support::TemporaryFolder words;
    (void)support::said(words, [&, n_ranks = ranks, writes_async = async] {
      for (long n = 1;; n += 2) {
        std::filesystem::remove_all(run);
        std::filesystem::create_directory(run);
        calls.fail(run, n, EIO);
        const Fitted broken = fit(run, n_ranks, writes_async);
        const bool last = n > calls.count();
        calls.end();
        if (last) break;
        CAPTURE(n, n_ranks, writes_async, broken.errors);
        const bool threw = !broken.errors[0].empty();
        failed += threw;
        for (const std::string& error : broken.errors) {
          REQUIRE(!error.empty() == threw);  // all, or none
          if (!threw) continue;
          CHECK_THAT(error, Catch::Contains("Input/output error"));
          CHECK_THAT(error, Catch::Contains(run));
        }
        later += threw && !st::CommitFolder(run).steps().empty();
        CHECK(fit(run, n_ranks, writes_async).weights == whole.weights);
        for (const std::string& name : names_in(run)) CHECK_FALSE(name.ends_with(".partial"));
      }
    });
  }
  CHECK(failed > 100);
  CHECK(later > 40);
}

TEST_CASE("after a crash at any operation of a commit the last one that was acknowledged is there, or the next", "[train]") {
  const Scratch scratch;
  long states = 0;
  for (const int ranks : {1, 2, 3})
    for (const bool exchange : {true, false}) {
      const auto t = support::crash_in_commits(scratch.path(), {.ranks = ranks, .exchange = exchange, .trials = 7});
      CAPTURE(ranks, exchange);
      CHECK(t.lost == 0);
      CHECK(t.refused == 0);
      states += t.states;
    }
  CHECK(states > 500);
  const auto control = support::crash_in_commits(scratch.path(), {.ranks = 2, .file_syncs = false, .trials = 7});
  CHECK(control.lost + control.refused > 0);
  const auto unnamed = support::crash_in_commits(scratch.path(), {.ranks = 2, .folder_syncs = false, .trials = 7});
  CHECK(unnamed.lost + unnamed.refused > 0);
}

TEST_CASE("a folder that cannot be listed is not one without commits, and one that cannot be locked is not one without locks",
          "[train]") {
  const Scratch scratch;
  const std::string run = scratch / "run";
  st::CommitFolder folder(run);
  folder.lock();
  support::write_commit(folder, 10, 1, 1);
  support::FileCalls& calls = support::FileCalls::all();
  int refused = 0;
  for (long n = 1;; ++n) {
    calls.fail(run, n, EIO);
    bool threw = false;
    try {
      (void)st::CommitFolder(run).steps();
    } catch (const sk::FileError&) { threw = true; }
    const bool last = n > calls.count();
    calls.end();
    if (last) break;
    CHECK(threw);
    ++refused;
  }
  CHECK(refused >= 5);  // of opendir, and of readdir for ".", "..", ".lock", the commit and the end

  const support::TemporaryFolder words;
  for (const int error : {EIO, ENOLCK}) {
    bool threw = false;
    const std::string said = support::said(words, [&] {
      std::filesystem::remove_all(scratch / "other");
      std::filesystem::create_directory(scratch / "other");
      calls.fail(scratch / "other/.lock", 2, error);  // of open, flock
      try {
        st::CommitFolder(scratch / "other").lock();
      } catch (const sk::FileError&) { threw = true; }
      calls.end();
    });
    CHECK(threw == (error == EIO));
    CHECK((said.find("without locks") != said.npos) == (error == ENOLCK));
  }
}

TEST_CASE("a file that cannot be begun leaves no name", "[train]") {
  const Scratch scratch;
  support::FileCalls& calls = support::FileCalls::all();
  int refused = 0;
  for (long n = 1;; ++n) {
    calls.fail(scratch.path(), n, EIO);
    bool threw = false;
    try {
      const sk::AtomicFile file(scratch / "file");
    } catch (const sk::FileError&) { threw = true; }
    const bool last = n > calls.count();
    calls.end();
    if (last) break;
    refused += threw;
    if (threw) CHECK(names_in(scratch.path()).empty());
  }
  CHECK(refused >= 2);  // of open, ftruncate
}

TEST_CASE("a sound commit that cannot be read now is not skipped for an earlier one, as a damaged one is", "[train]") {
  const Scratch scratch;
  const std::string run = scratch / "run";
  support::FileCalls& calls = support::FileCalls::all();
  {
    st::CommitFolder folder(run);
    folder.lock();
    for (const int version : {1, 2}) support::write_commit(folder, 10 * version, version, 3);
  }
  for (const int error : {EMFILE, ENFILE, ENOMEM, EACCES, ESTALE, EIO}) {
    int refused = 0, skipped = 0;
    for (long n = 1;; ++n) {
      calls.fail(run, n, error);
      const int found = support::found_version(run);
      const bool last = n > calls.count();
      calls.end();
      if (last) break;
      CHECK((found == 2 || found == -1 || found == 1));
      refused += found == -1;
      skipped += found == 1;
    }
    CAPTURE(error, refused, skipped);
    CHECK((skipped > 0) == (error == EIO));
    CHECK(refused > 0);
  }
}

TEST_CASE("a commit of more shards than a process may open files is read", "[train]") {
  const Scratch scratch;
  const std::string run = scratch / "run";
  {
    st::CommitFolder folder(run);
    folder.lock();
    support::write_commit(folder, 10, 1, 1);
    support::write_commit(folder, 20, 2, 24);
  }
  const int next = ::dup(0);
  REQUIRE(next >= 0);
  ::close(next);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next) + 4;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const int found = support::found_version(run);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(found == 2);
}

TEST_CASE("the name of the run's folder is brought to the disk, whoever has made it", "[train]") {
  const Scratch scratch;
  for (const char* name : {"/run", "/made/"}) {
    if (name[1] == 'm') std::filesystem::create_directory(scratch.path() + name);
    support::FileCalls::all().record(scratch.path());
    st::CommitFolder(scratch.path() + name).lock();
    long synced = 0;
    for (const auto& o : support::FileCalls::all().end())
      synced += o.kind == support::FileOperation::Kind::sync_folder && o.path == scratch.path();
    CHECK(synced == 1);
  }
}
