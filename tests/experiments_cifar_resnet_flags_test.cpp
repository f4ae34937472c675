// SPDX-License-Identifier: Apache-2.0
// What runs of 17_cifar_resnet are recorded as: two that did other work are never compared.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "../examples/experiments/support/cifar_or_digits.hpp"
#include "../examples/experiments/support/cifar_resnet_flags.hpp"
#include "support/temporary_folder.hpp"

namespace {
experiments::CifarResNetFlags with(const std::vector<std::string>& given) {
  experiments::CifarResNetFlags o;
  skein::Flags flags;
  o.flags(flags);
  std::vector<const char*> arguments{"17_cifar_resnet"};
  for (const std::string& flag : given) arguments.push_back(flag.c_str());
  flags.read(static_cast<int>(arguments.size()), arguments.data());
  return o;
}
std::string settings_of_kfac(const experiments::CifarResNetFlags& o) {
  return recorded_settings(o, "CIFAR-10 from here", 192, "kfac");
}
/// Of a run of K-FAC on so many ranks.
std::string recorded_with(const std::vector<std::string>& flags, int ranks = 1) {
  return experiments::settings_by_ranks(with(flags), settings_of_kfac).of(ranks);
}

std::vector<std::string> names_of_flags() {
  experiments::CifarResNetFlags o;
  skein::Flags flags;
  o.flags(flags);
  std::vector<std::string> names;
  std::istringstream help(flags.help("program"));
  for (std::string word; help >> word;)
    if (word.starts_with("--") && word != "--help") names.push_back(word.starts_with("--[no-]") ? "--" + word.substr(7) : word);
  return names;
}
}  // namespace

TEST_CASE("Every flag that changes the work of a run changes what it is recorded as", "[experiments]") {
  const std::map<std::string, const char*> works{
      {"--depth", "56"},         {"--epochs", "3"},        {"--batch", "3"},        {"--accumulate", "3"},
      {"--samples", "3"},        {"--momentum", "0"},      {"--threads", "3"},      {"--label-smoothing", "0.1"},
      {"--inverse", "cholesky"}, {"--inverse-every", "3"}, {"--factor-every", "3"}, {"--augment", "false"},
      {"--global-batch", "3"},   {"--inverse-rank", "3"},  {"--kl-clip", "0"},      {"--checkpoint", "here"}};
  // The optimizer and the data are named beside the flags; the rest sets rates and what is told.
  const std::vector<std::string> others{
      "--optimizer",    "--data",   "--lr",     "--weight-decay", "--warmup", "--decay", "--damping",
      "--factor-decay", "--target", "--record", "--seed",         "--svg",    "--json",  "--factor-bias-correction"};
  const std::string usual = recorded_with({});
  for (const auto& [name, value] : works) {
    CAPTURE(name);
    CHECK(recorded_with({name + "=" + value}) != usual);
  }
  for (const std::string& name : names_of_flags()) {  // a new flag is put into one of the two lists
    CAPTURE(name);
    CHECK((works.contains(name) || std::find(others.begin(), others.end(), name) != others.end()));
  }
  CHECK(names_of_flags().size() >= works.size() + others.size());
}

TEST_CASE("A recorded run names its optimizer, its data and their number, and has no comma", "[experiments]") {
  const experiments::CifarResNetFlags o;
  CHECK(recorded_settings(o, "CIFAR-10 from here", 192, "sgd") != recorded_settings(o, "CIFAR-10 from here", 192, "lars"));
  CHECK(recorded_settings(o, "CIFAR-10 from here", 192, "sgd") != recorded_settings(o, "CIFAR-10 from here", 96, "sgd"));
  CHECK(recorded_settings(o, "CIFAR-10 from here", 192, "sgd") == recorded_settings(o, "CIFAR-10 from there", 192, "sgd"));
  CHECK(recorded_settings(o, "drawn digits", 192, "sgd") != recorded_settings(o, "CIFAR-10 from here", 192, "sgd"));
  CHECK(recorded_settings(o, "a subset of CIFAR-10 (10,000 images)", 192, "kfac").find(',') == std::string::npos);
}

TEST_CASE("A run of one rank is that of an equal batch of a rank, and that of an equal batch of all ranks", "[experiments]") {
  const std::string by_24 = recorded_with({"--batch=24"});
  CHECK(recorded_with({"--batch=24"}, 4) == by_24);         // weak scaling
  CHECK(recorded_with({"--global-batch=24"}, 1) == by_24);  // strong scaling
  CHECK(recorded_with({"--global-batch=24"}, 4) == recorded_with({"--batch=6"}));
  CHECK(recorded_with({"--global-batch=24"}, 5).empty());
}

TEST_CASE("The K-FAC that is there sooner than SGD can be asked for", "[experiments]") {
  const auto o = with({"--optimizer=kfac", "--kl-clip=0", "--factor-decay=0.8", "--factor-bias-correction", "--inverse=cholesky",
                       "--inverse-rank=16"});
  CHECK((o.kl_clip == 0 && o.factor_decay == 0.8 && o.factor_bias_correction && o.inverse_rank == 16));
  experiments::check_flags(o, false);
}

TEST_CASE("Flags that no training can be made of are refused by themselves", "[experiments]") {
  experiments::check_flags(with({"--depth=56"}), true);
  CHECK_THROWS_WITH(experiments::check_flags(with({"--depth=44"}), false), Catch::Contains("--depth 44: it is 20, 32 or 56"));
  CHECK_THROWS_WITH(experiments::check_flags(with({"--depth=21"}), true), Catch::Contains("--depth 21: it is 20, 32 or 56"));
  CHECK_THROWS_WITH(experiments::check_flags(with({"--depth=32"}), false),
                    Catch::Contains("--depth 32: this program was compiled with ResNet-20 alone; configure with "
                                    "-DSKEIN_TESTS=OFF for 32 and 56"));
  CHECK_THROWS_WITH(experiments::check_flags(with({"--decay=1,2,3,4,5,6,7,8,9"}), false),
                    Catch::Contains("--decay has 9 places: give at most 8"));
  CHECK_THROWS_WITH(experiments::check_flags(with({"--optimizer=kfac", "--inverse-rank=16"}), false),
                    Catch::Contains("--inverse-rank 16 goes with --inverse cholesky"));
  CHECK_THROWS_AS(experiments::check_flags(with({"--depth=44"}), false), skein::FlagError);
}

TEST_CASE("Flags that do nothing beside others are refused", "[experiments]") {
  const auto refused = [](const std::vector<std::string>& flags, const std::string& sentence) {
    CHECK_THROWS_WITH(experiments::check_flags(with(flags), false), Catch::Contains(sentence));
  };
  for (const char* flag : {"--damping=2", "--kl-clip=0", "--factor-decay=0.8", "--factor-bias-correction", "--inverse=cholesky",
                           "--inverse-rank=9", "--factor-every=3", "--inverse-every=3"}) {
    const std::string given(flag), name = given.substr(0, given.find('='));
    refused({"--optimizer=lamb", flag}, name + " does nothing with --optimizer lamb: leave it out");
    if (name != "--inverse-rank") experiments::check_flags(with({"--optimizer=all", flag}), false);
  }
  refused({"--optimizer=lamb", "--momentum=0.5"}, "--momentum does nothing with --optimizer lamb: leave it out");
  for (const char* optimizer : {"sgd", "lars", "kfac", "all"})
    experiments::check_flags(with({std::string("--optimizer=") + optimizer, "--momentum=0.5"}), false);
  refused({"--batch=4", "--global-batch=8"}, "--batch does nothing beside --global-batch: leave it out");
}

TEST_CASE("Figures of a whole set are not called those of its first images", "[experiments]") {
  const support::TemporaryFolder folder;
  const std::string records(3 * 3073, '\1');
  for (const char* file : {"train_subset_10000.bin", "test_subset_2000.bin"})
    support::write_file(folder / file, records.data(), records.size());
  for (const long asked : {0L, 2L, 3L, 4L}) {
    CAPTURE(asked);
    experiments::CifarResNetFlags o;
    o.samples = asked;
    const auto set = experiments::cifar_or_digits(folder.path(), o.samples);
    CHECK(set.train.size() == (asked == 2 ? 2 : 3));
    CHECK(o.samples == (asked == 2 ? 2 : 0));
    CHECK((job(o, set.source).find("the first") != std::string::npos) == (asked == 2));
  }
}
