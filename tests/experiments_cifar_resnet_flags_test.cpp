// SPDX-License-Identifier: Apache-2.0
// What runs of 17_cifar_resnet are recorded as: two that did other work are never compared.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "../examples/experiments/support/cifar_resnet_flags.hpp"

namespace {
/// Of a run of K-FAC with this flag, or none.
std::string recorded_with(const std::string& flag) {
  experiments::CifarResNetFlags o;
  skein::Flags flags;
  o.flags(flags);
  const char* const arguments[] = {"17_cifar_resnet", flag.c_str()};
  flags.read(flag.empty() ? 1 : 2, arguments);
  return recorded_settings(o, "CIFAR-10 from here", 192, "kfac");
}

std::vector<std::string> names_of_flags() {
  experiments::CifarResNetFlags o;
  skein::Flags flags;
  o.flags(flags);
  std::vector<std::string> names;
  std::istringstream help(flags.help("program"));
  for (std::string word; help >> word;)
    if (word.starts_with("--") && word != "--help") names.push_back(word.starts_with("--no-") ? "--" + word.substr(5) : word);
  return names;
}
}  // namespace

TEST_CASE("Every flag that changes the work of a run changes what it is recorded as", "[experiments]") {
  const std::map<std::string, const char*> works{
      {"--depth", "56"},         {"--epochs", "3"},        {"--batch", "3"},        {"--accumulate", "3"},
      {"--samples", "3"},        {"--momentum", "0"},      {"--threads", "3"},      {"--label-smoothing", "0.1"},
      {"--inverse", "cholesky"}, {"--inverse-every", "3"}, {"--factor-every", "3"}, {"--augment", "false"}};
  // The optimizer and the data are named beside the flags; the rest sets rates and what is told.
  const std::vector<std::string> others{"--optimizer", "--data",   "--lr",   "--weight-decay", "--warmup", "--decay",
                                        "--damping",   "--target", "--seed", "--record",       "--svg",    "--json"};
  const std::string usual = recorded_with("");
  for (const auto& [name, value] : works) {
    CAPTURE(name);
    CHECK(recorded_with(name + "=" + value) != usual);
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
