// SPDX-License-Identifier: Apache-2.0
// run: what a program prints and returns where its body throws. Each case is a process of its own.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <skein/core/run.hpp>

#include "../support/temporary_folder.hpp"

namespace sk = skein;

namespace {

struct Ended {
  int code;
  std::string text;
};
/// A child process whose main is `program(argc, argv)`; both outputs go to one file.
template <class Program> Ended ended(std::vector<std::string> line, Program&& program) {
  const support::TemporaryFolder folder;
  const std::string file = folder / "out";
  line.insert(line.begin(), "bin/program");
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (std::string& word : line) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (!std::freopen(file.c_str(), "w", stdout)) _exit(99);
    dup2(fileno(stdout), 2);
    const int code = program(static_cast<int>(line.size()), argv.data());
    std::fflush(stdout);
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

struct Options {
  int epochs = 5;
  void flags(sk::Flags& f) { f("epochs", epochs, "how many").at_least(1); }
};

}  // namespace

TEST_CASE("What a program throws is printed behind its output, and its code is 1", "[core]") {
  const Ended e = ended({}, [](int argc, char** argv) {
    return sk::run(argc, argv, [] {
      std::printf("epoch 1");
      throw sk::ArgumentError("the batch is 0");
    });
  });
  CHECK(e.code == 1);
  CHECK(e.text == "epoch 1program: the batch is 0\n");
  CHECK(ended({}, [](int argc, char** argv) { return sk::run(argc, argv, [] { throw 3; }); }).text ==
        "program: an exception that is no std::exception\n");
}

TEST_CASE("run returns what its body returns", "[core]") {
  CHECK(ended({}, [](int argc, char** argv) { return sk::run(argc, argv, [] {}); }).code == 0);
  CHECK(ended({}, [](int argc, char** argv) { return sk::run(argc, argv, [] { return 7; }); }).code == 7);
}

TEST_CASE("run reads a program's options, and ends it where they are wrong", "[core]") {
  const auto program = [](int argc, char** argv) {
    return sk::run<Options>(argc, argv, [](const Options& o) { return 10 * o.epochs; });
  };
  CHECK(ended({}, program).code == 50);
  CHECK(ended({"--epochs", "2"}, program).code == 20);
  const Ended wrong = ended({"--epochs", "0"}, program);
  CHECK(wrong.code == 2);
  CHECK(wrong.text.starts_with("program: --epochs is \"0\": a whole number of at least 1 is wanted\nusage: program"));
  const Ended help = ended({"--help"}, program);
  CHECK(help.code == 0);
  CHECK_THAT(help.text, Catch::Contains("--epochs  how many; a whole number of at least 1 (5)"));
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  const Ended other = ended({"--epochs", "0"}, program), silent = ended({"--help"}, program);
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  const Ended first = ended({"--help"}, program);
  unsetenv("OMPI_COMM_WORLD_RANK");
  CHECK(other.code == 2);
  CHECK(other.text.starts_with("program: rank 1: --epochs is \"0\""));  // the launcher has not ended it: rank 0's are right
  CHECK((silent.code == 0 && silent.text.empty()));
  CHECK((first.code == 0 && first.text == help.text));
}
