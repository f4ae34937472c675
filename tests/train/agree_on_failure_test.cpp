// SPDX-License-Identifier: Apache-2.0
#include <skein/train/agree_on_failure.hpp>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <vector>

#include <skein/comm/thread/spawn.hpp>

#include "../support/commit_trials.hpp"
#include "../support/thrown.hpp"
#include <catch2/catch.hpp>

namespace sk = skein;
namespace st = skein::train;

namespace {
/// A rank of several, which tells the others a text, and nothing else.
class TextsOnly final : public support::NoTraining {
 public:
  explicit TextsOnly(sk::ThreadComm& world) : world_(world) {}
  int rank() const override { return world_.rank(); }
  int ranks() const override { return world_.size(); }
  std::vector<std::string> texts_of_all(const std::string& own) override { return world_.all_gather(own); }

 private:
  sk::ThreadComm& world_;
};

/// What each rank says where some fail: what it gets, or what it throws.
std::vector<std::string> said_where(const std::vector<std::string>& failures) {
  std::vector<std::string> said(failures.size());
  sk::spawn(static_cast<int>(failures.size()), [&](sk::ThreadComm& world) {
    TextsOnly training(world);
    const std::string& own = failures[static_cast<std::size_t>(world.rank())];
    std::string& heard = said[static_cast<std::size_t>(world.rank())];
    try {
      for (const std::string& text : st::agree_on_failure(
               training, "!" + std::to_string(world.rank()), own, [&] { throw std::runtime_error("own: " + own); },
               [](int rank, const std::string&reason) { return "rank " + std::to_string(rank) + ": " + reason; }))
        heard += text;
    } catch (const sk::CommError& e) { heard = e.what(); } catch (const std::runtime_error& e) {
      heard = e.what();
    }
  });
  return said;
}
}  // namespace

TEST_CASE("what one rank fails at is thrown on all: its own error there, and its reason with its rank elsewhere", "[train]") {
  using Said = std::vector<std::string>;
  CHECK(said_where({""}) == Said{"!0"});
  CHECK(said_where({"", "", ""}) == Said{"!0!1!2", "!0!1!2", "!0!1!2"});
  CHECK(said_where({"full"}) == Said{"own: full"});
  CHECK(said_where({"", "+ full", ""}) == Said{"rank 1: + full", "own: + full", "rank 1: + full"});
  CHECK(said_where({"", "gone", "full", ""}) == Said{"rank 1: gone", "own: gone", "own: full", "rank 1: gone"});
}

TEST_CASE("whatever work throws is noted as a text that is not empty", "[train]") {
  std::string failure;
  st::noting(failure, [] {});
  CHECK(failure.empty());
  st::noting(failure, [] { throw std::runtime_error("full"); });
  CHECK(failure == "full");
  st::noting(failure, [] { throw std::runtime_error(""); });
  CHECK(failure == "an error without a text");
  st::noting(failure, [] { throw 3; });
  CHECK(failure == "an exception that is no std::exception");
}

TEST_CASE("an exception of what is saved reaches its caller as it is, where the others do not answer too", "[train]") {
  st::FileFailure own, of_file;
  own.note([] { throw std::domain_error("the layer's"); });
  own.note([] { throw std::logic_error("a later one"); });
  of_file.reason = "no space left";
  CHECK(own.reason == "the layer's");
  const auto without_answer = [] { throw sk::CommError("gone"); };
  CHECK_THROWS_AS(own.meet(without_answer), std::domain_error);
  CHECK_THROWS_AS(own.raise("a", "could not be saved: "), std::domain_error);
  CHECK_THROWS_AS(of_file.meet(without_answer), sk::CommError);
  CHECK_THROWS_WITH(of_file.raise("a", "could not be saved: "), Catch::Contains("could not be saved: no space left"));
}

TEST_CASE("what reading throws is a fault of the file where it is a FileError, with a hint where the file could be read",
          "[train]") {
  const auto failure_of = [](auto error) { return st::FileFailure::of_reading(std::make_exception_ptr(error), "; a hint"); };
  CHECK_FALSE(st::FileFailure::of_reading(nullptr, "; a hint").failed());
  const st::FileFailure other = failure_of(sk::FileError("a", -1, "another model's"));
  CHECK(other.reason == "a: another model's; a hint");
  CHECK_THROWS_WITH(other.raise("b", "cannot be loaded: "), Catch::Equals("b: cannot be loaded: a: another model's; a hint"));
  const st::FileFailure unread = failure_of(sk::FileError("a", -1, "could not be read", EIO));
  CHECK_THAT(unread.reason, Catch::StartsWith("a: could not be read") && !Catch::Contains("hint"));
  CHECK_THROWS_AS(unread.raise("b", "cannot be loaded: "), sk::FileError);
  const st::FileFailure layers = failure_of(std::domain_error("the layer's"));
  CHECK(layers.reason == "the layer's");
  CHECK_THROWS_AS(layers.raise("b", "cannot be loaded: "), std::domain_error);
}
