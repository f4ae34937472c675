// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/differences.hpp>

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;

TEST_CASE("the first value that differs is named with the ranks that have it, the next by name", "[comm]") {
  const auto lines = [](double lr, int batch, const std::string& more = "") {
    sk::NamedValues values;
    values.of("Sgd").add(".lr", lr).of("").add("the batch", batch);
    return values.lines() + more;
  };
  CHECK(sk::comm::differences({"+" + lines(0.1, 8), "+" + lines(0.1, 8)}).empty());
  CHECK(sk::comm::differences({"+" + lines(0.1, 8), "+" + lines(0.5, 8), "+" + lines(0.1, 4)}) ==
        "`.lr` of Sgd is 0.1 on ranks 0, 2, 0.5 on rank 1 (and so differ the batch)");
  CHECK(sk::comm::differences({"+" + lines(0.1, 8, "more\t1\n"), "+" + lines(0.1, 8)}) ==
        "more is 1 on rank 0, not given on rank 1");
  CHECK(sk::comm::differences({"+" + lines(0.1, 8, "more\t1\n"), "-" + lines(0.1, 8)}).empty());  // which need not have it
}
