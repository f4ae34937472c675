// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include <skein/optim/groups.hpp>
#include <skein/optim/sgd.hpp>

#include "support/optimizer_harness.hpp"

using namespace skein::optim;

namespace {
const std::vector<ParameterEntry> table{
    {"0.weight", 0, 160, true}, {"0.bias", 160, 176, false}, {"head.weight", 176, 304, true}, {"head.bias", 304, 320, false}};
}

TEST_CASE("A pattern matches as in a shell", "[optim]") {
  STATIC_REQUIRE(matches("*", ""));
  STATIC_REQUIRE(matches("0.*", "0.weight"));
  STATIC_REQUIRE_FALSE(matches("0.*", "10.weight"));
  STATIC_REQUIRE(matches("*.bias", "0.body.3.bias"));
  STATIC_REQUIRE(matches("?.weight", "7.weight"));
  STATIC_REQUIRE_FALSE(matches("?.weight", "17.weight"));
  STATIC_REQUIRE(matches("*a*b", "xxaabab"));
  STATIC_REQUIRE_FALSE(matches("*a*b", "xxaabac"));
  STATIC_REQUIRE(matches("weight", "weight"));
  STATIC_REQUIRE_FALSE(matches("weight", "weights"));
}

TEST_CASE("Without rules the arena is one range", "[optim]") {
  CHECK(resolve({}, table) == std::vector<ParameterGroupRange>{{0, 320}});
  CHECK(resolve({}, {}).empty());
}

TEST_CASE("Rules become sorted ranges; neighbours that are alike are one", "[optim]") {
  CHECK(resolve(no_decay_on_biases_and_norms(), table) ==
        std::vector<ParameterGroupRange>{{0, 160}, {160, 176, 1, 0}, {176, 304}, {304, 320, 1, 0}});
  CHECK(resolve(learning_rate("head.*", 0.1f), table) == std::vector<ParameterGroupRange>{{0, 176}, {176, 320, 0.1f}});
  CHECK(resolve(frozen("0.*"), table) == std::vector<ParameterGroupRange>{{0, 176, 1, 1, true}, {176, 320}});
  CHECK(resolve({frozen("*"), trainable("head.bias")}, table) ==
        std::vector<ParameterGroupRange>{{0, 304, 1, 1, true}, {304, 320}});
  CHECK(resolve({learning_rate("*", 0.5f), learning_rate("0.*", 2.0f), weight_decay("*.weight", 0.25f)}, table) ==
        std::vector<ParameterGroupRange>{{0, 160, 2, 0.25f}, {160, 176, 2, 1}, {176, 304, 0.5f, 0.25f}, {304, 320, 0.5f, 1}});
  const GroupRule own{.predicate = [](const ParameterEntry& p) { return p.end - p.begin > 150; }, .lr_factor = 3.0f};
  CHECK(resolve(own, table) == std::vector<ParameterGroupRange>{{0, 160, 3}, {160, 320}});
  std::vector<ParameterEntry> turned(table.rbegin(), table.rend());
  CHECK(resolve(frozen("0.*"), turned) == resolve(frozen("0.*"), table));
}

TEST_CASE("A rule that matches nothing, or that is negative, is refused with names", "[optim]") {
  CHECK_THROWS_WITH(
      resolve(frozen("features.*"), table),
      "rule 0 of .groups (\"features.*\") matches no parameter; there are 0.weight, 0.bias, head.weight, head.bias");
  CHECK_THROWS_WITH(resolve({frozen("0.*"), learning_rate("*", -1.0f)}, table),
                    "rule 1 of .groups (\"*\") has a negative factor");
  CHECK_THROWS_WITH(resolve(learning_rate("0.*", NAN), table), Catch::Contains("has a factor that is no finite number"));
  const std::vector<ParameterEntry> weights{table[0]};
  CHECK_NOTHROW(resolve(no_decay_on_biases_and_norms(), weights));
  std::vector<ParameterEntry> deep;
  std::vector<std::string> names;  // "0.weight" to "19.weight"
  for (int i = 0; i < 20; ++i) names.push_back(std::to_string(i) + ".weight");
  for (long i = 0; i < 20; ++i) deep.push_back({names[static_cast<std::size_t>(i)], 16 * i, 16 * (i + 1), true});
  CHECK_THROWS_WITH(resolve(frozen("head.*"), deep),
                    Catch::Contains("there are 0.weight, 1.weight, 2.weight, 3.weight, 4.weight, 5.weight, ..., 18.weight, "
                                    "19.weight"));  // the last layers too: a head is what rules are about
}

TEST_CASE("update() applies the factors, leaves frozen ranges alone, and takes any cut", "[optim]") {
  const Sgd sgd{.lr = 0.5f,
                .weight_decay = 0.25f,
                .groups = {no_decay_on_biases_and_norms(), frozen("0.weight"), learning_rate("head.*", 0.5f)}};
  const std::vector<ParameterGroupRange> ranges = resolve(groups_of(sgd), table);
  const auto run = [&](std::vector<long> cuts) {
    std::vector<float> p(320, 1.0f), g(320, 2.0f);
    const float* gradients[] = {g.data()};
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      UpdateCall<float, skein::Cpu> call;
      call.parameters = p.data();
      call.gradients = gradients;
      call.begin = cuts[c];
      call.end = cuts[c + 1];
      call.lr = sgd.lr;
      call.weight_decay = weight_decay_of(sgd);
      update(sgd, std::span<const ParameterGroupRange>(ranges), call);
    }
    return p;
  };
  const std::vector<float> p = run({0, 320});
  CHECK(p[0] == 1.0f);  // frozen
  CHECK(p[159] == 1.0f);
  CHECK(p[160] == 1.0f - 0.5f * 2.0f);             // no decay
  CHECK(p[176] == 1.0f - 0.25f * (2.0f + 0.25f));  // half the rate, decay
  CHECK(p[319] == 1.0f - 0.25f * 2.0f);
  CHECK(run({0, 16, 48, 170, 180, 320}) == p);
}
