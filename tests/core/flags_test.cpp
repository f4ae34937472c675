// SPDX-License-Identifier: Apache-2.0
// Flags: what the command line sets, and what is said of flags and values that there are not.
#include <catch2/catch.hpp>

#include <limits>
#include <string>
#include <vector>

#include <skein/core/flags.hpp>

#include "../support/thrown.hpp"

namespace sk = skein;

namespace {

struct Options {
  int epochs = 5;
  long batch = 128;
  std::size_t seed = 1;
  float lr = 0.05f;
  double momentum = 0.9;
  bool full = true, quiet = false;
  std::string network = "mlp", data;
  std::vector<int> stages{2, 4};
  std::vector<double> rates{0.5};
  std::vector<std::string> names;
};

/// The options that a command line gives; `again`: read() returned false.
Options read(std::vector<const char*> line, bool* again = nullptr) {
  Options o;
  sk::Flags flags{"A program"};
  flags("epochs", o.epochs, "passes over the data").within(1, 1000);
  flags("batch", o.batch).at_least(1);
  flags("seed", o.seed);
  flags("lr", o.lr, "learning rate").within(0, 10);
  flags("momentum", o.momentum);
  flags("full", o.full), flags("quiet", o.quiet);
  flags("network", o.network, "which one").one_of({"mlp", "lenet"});
  flags("data_folder", o.data);
  flags("stages", o.stages).at_least(2);
  flags("rates", o.rates).within(0, 1);
  flags("names", o.names);
  line.insert(line.begin(), "/home/me/program");
  const bool ran = flags.read(static_cast<int>(line.size()), line.data());
  if (again) *again = ran;
  return o;
}
std::string refused(std::vector<const char*> line) {
  const std::string text = support::thrown<sk::FlagError>([&] { (void)read(std::move(line)); });
  CHECK_THAT(text, Catch::Contains("\nusage: program [--flag value]...\n"));
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("Flags set what they name, and leave the rest at its defaults", "[core]") {
  const Options o =
      read({"--lr", "0.01", "--epochs=20", "--no-full", "--quiet", "--network", "lenet", "--data-folder", "a b", "--stages",
            "2,8", "--names=x,y", "--rates", "0.1,1e-3", "--seed", "18446744073709551615", "--momentum", "-1e-3"});
  CHECK(o.lr == 0.01f);
  CHECK(o.epochs == 20);
  CHECK_FALSE(o.full);
  CHECK(o.quiet);
  CHECK(o.network == "lenet");
  CHECK(o.data == "a b");
  CHECK(o.stages == std::vector<int>{2, 8});
  CHECK(o.names == std::vector<std::string>{"x", "y"});
  CHECK(o.rates == std::vector<double>{0.1, 1e-3});
  CHECK(read({}).rates == std::vector<double>{0.5});
  CHECK(o.seed == ~std::size_t{0});
  CHECK(o.momentum == -1e-3);
  CHECK(o.batch == 128);
  CHECK(read({"--epochs", "3", "--epochs", "4", "--quiet=true", "--quiet=no"}).epochs == 4);
  CHECK(read({"--data_folder", "x"}).data == "x");
}

TEST_CASE("A flag that there is not, and a value that is none, are one sentence and the list", "[core]") {
  CHECK(refused({"--learning-rate", "0.1"}) == "there is no flag --learning-rate");
  CHECK(refused({"--epoch", "3"}) == "there is no flag --epoch: is --epochs meant?");
  CHECK(refused({"--bacth=3"}) == "there is no flag --bacth: is --batch meant?");
  CHECK(refused({"5"}) == "there is no flag 5");
  CHECK(refused({"--no-epochs"}) == "there is no flag --no-epochs");
  CHECK(refused({"--epochs"}) == "--epochs has no value: a whole number from 1 to 1000 is wanted");
  CHECK(refused({"--epochs", "0"}) == "--epochs is \"0\": a whole number from 1 to 1000 is wanted");
  CHECK(refused({"--epochs", "2.5"}) == "--epochs is \"2.5\": a whole number from 1 to 1000 is wanted");
  CHECK(refused({"--epochs", "99999999999"}) == "--epochs is \"99999999999\": a whole number from 1 to 1000 is wanted");
  CHECK(refused({"--seed", "-1"}) == "--seed is \"-1\": a whole number is wanted");
  CHECK(refused({"--lr", "fast"}) == "--lr is \"fast\": a number from 0 to 10 is wanted");
  CHECK(refused({"--momentum", "nan"}) == "--momentum is \"nan\": a number is wanted");
  CHECK(refused({"--network=resnet"}) == "--network is \"resnet\": one of mlp, lenet is wanted");
  CHECK(refused({"--seed", "+-1"}) == "--seed is \"+-1\": a whole number is wanted");
  CHECK(refused({"--stages="}) == "--stages is \"\": a list with commas of whole numbers of at least 2 is wanted");
  CHECK(refused({"--rates", "0.5,2"}) == "--rates is \"0.5,2\": a list with commas of numbers from 0 to 1 is wanted");
  CHECK(refused({"--quiet=maybe"}) == "--quiet is \"maybe\": true or false is wanted");
  CHECK(refused({"--stages", "2,x"}) == "--stages is \"2,x\": a list with commas of whole numbers of at least 2 is wanted");
}

TEST_CASE("A number may have a plus, and a list of words may be empty", "[core]") {
  CHECK(read({"--lr", "+0.5"}).lr == 0.5f);
  CHECK(read({"--epochs=+3"}).epochs == 3);
  CHECK(read({"--seed", "+7"}).seed == 7);
  CHECK(read({"--names", "a,b", "--names="}).names.empty());
  CHECK(read({"--names", ""}).names.empty());
}

TEST_CASE("A flag is not taken for the value of the one before it", "[core]") {
  CHECK(refused({"--data-folder", "--quiet"}) == "--data-folder has no value: words is wanted");
  CHECK(refused({"--data-folder", "--no-full"}) == "--data-folder has no value: words is wanted");
  CHECK(refused({"--names", "--lr=0.1"}) == "--names has no value: a list with commas of words is wanted");
  CHECK(refused({"--data-folder", "--help"}) == "--data-folder has no value: words is wanted");
  CHECK(read({"--data-folder", "--other"}).data == "--other");
  CHECK(read({"--data-folder=--quiet"}).data == "--quiet");
}

TEST_CASE("A word behind a flag that has its value already says how the value is given", "[core]") {
  CHECK(refused({"--full", "false"}) == "there is no flag false: --full takes its value as --full=false, or --no-full");
  CHECK(refused({"--quiet", "1"}) == "there is no flag 1: --quiet takes its value as --quiet=1, or stands alone");
  CHECK(refused({"--data-folder", "my", "run"}) == "there is no flag run: words with spaces stand in quotes");
  CHECK(refused({"--full", "maybe"}) == "there is no flag maybe");
  CHECK(refused({"--full=true", "false"}) == "there is no flag false");
  CHECK(refused({"--no-full", "false"}) == "there is no flag false");
  CHECK(refused({"--epochs", "3", "5"}) == "there is no flag 5");
  CHECK(refused({"--data-folder", "my", "epochs=3"}) == "there is no flag epochs: is --epochs meant?");
}

TEST_CASE("The flag that is nearest to a wrong one is named, and none for other letters", "[core]") {
  CHECK(refused({"-lr", "0.1"}) == "there is no flag -lr: is --lr meant?");
  CHECK(refused({"epochs=3"}) == "there is no flag epochs: is --epochs meant?");
  CHECK(refused({"---epochs"}) == "there is no flag ---epochs: is --epochs meant?");
  CHECK(refused({"--bs", "3"}) == "there is no flag --bs");
  CHECK(refused({"--wd", "3"}) == "there is no flag --wd");
  CHECK(refused({"-"}) == "there is no flag -");
}

TEST_CASE("A flag's bounds are values that it takes, and an upper one alone is said", "[core]") {
  float rate = 0, momentum = 0;
  int depth = 0;
  sk::Flags flags;
  flags("rate", rate).within(0, 0.1);  // the float 0.1 is larger than the double
  flags("momentum", momentum).within(0.7, 1);
  flags("depth", depth).within(-std::numeric_limits<double>::infinity(), 5);
  const char* line[] = {"program", "--rate", "0.1", "--momentum", "0.7", "--depth", "-3"};
  CHECK(flags.read(7, line));
  CHECK((rate == 0.1f && momentum == 0.7f && depth == -3));
  const char* beyond[] = {"program", "--rate", "0.10001"};
  CHECK_THROWS_WITH(flags.read(3, beyond), Catch::Contains("--rate is \"0.10001\": a number from 0 to 0.1 is wanted"));
  const char* deep[] = {"program", "--depth", "6"};
  CHECK_THROWS_WITH(flags.read(3, deep), Catch::Contains("--depth is \"6\": a whole number of at most 5 is wanted"));
}

TEST_CASE("The list of flags has what they take and their defaults", "[core]") {
  Options o;
  sk::Flags flags{"A program"};
  flags("epochs", o.epochs, "passes over the data").within(1, 1'000'000);
  flags("lr", o.lr, "learning rate");
  flags("names", o.names);
  flags("full", o.full, "with all of it");
  CHECK(flags.help("program") ==
        "A program\n"
        "usage: program [--flag value]...\n"
        "  --epochs     passes over the data; a whole number from 1 to 1000000 (5)\n"
        "  --lr         learning rate; a number (0.05)\n"
        "  --names      a list with commas of words\n"
        "  --[no-]full  with all of it; true or false (true)\n"
        "  --help       this list\n");
  CHECK_THROWS_WITH(flags("lr", o.lr), Catch::Contains("there is a flag --lr already"));
  bool shuffle = true, other = false;
  double number = 0;
  flags("shuffle", shuffle);
  CHECK_THROWS_WITH(flags("no_shuffle", number),
                    Catch::Contains("--no-shuffle switches the flag --shuffle off: give one of the two another name"));
  flags("no-crop", number);
  CHECK_THROWS_WITH(flags("crop", other), Catch::Contains("--no-crop switches the flag --crop off"));
  bool ran = true;
  CHECK(read({"--help", "--nonsense"}, &ran).epochs == 5);
  CHECK_FALSE(ran);
}
