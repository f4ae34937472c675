// SPDX-License-Identifier: Apache-2.0
// Variables of the environment: what is set is taken whole, or refused by name.
#include <skein/core/environment.hpp>

#include <catch2/catch.hpp>

#include <cstdlib>
#include <limits>

#include <skein/comm/options.hpp>
#include <skein/core/workers.hpp>

#include "../support/thrown.hpp"

namespace sk = skein;

namespace {
/// f() while the variable is set.
template <class Function> auto with(const char* name, const char* value, Function&& f) {
  struct Unset {
    const char* name;
    ~Unset() { ::unsetenv(name); }
  } const unset{name};
  ::setenv(name, value, 1);
  return f();
}
std::string fault(const char* name, const char* value) {
  return with(name, value, [&] {
    return support::thrown<sk::ArgumentError>([] {
      (void)sk::CommOptions();
      (void)sk::Workers::default_count();
    });
  });
}
}  // namespace

TEST_CASE("what is set in the environment is taken whole", "[core]") {
  const auto number = [](const char* value) {
    return with("SKEIN_TEST_NUMBER", value, [] { return sk::environment_number("SKEIN_TEST_NUMBER", 7); });
  };
  CHECK(number("") == 7);
  CHECK(sk::environment_number("SKEIN_TEST_NUMBER", 7) == 7);
  CHECK(number("1e3") == 1000);
  CHECK(number("0.25") == 0.25);
  CHECK(number("inf") == std::numeric_limits<double>::infinity());
  CHECK(with("SKEIN_DEADLINE", "inf", [] { return sk::CommOptions().deadline; }) == std::numeric_limits<double>::infinity());
  CHECK(with("SKEIN_THREADS", "1e1", [] { return sk::Workers::default_count(); }) == 10);
  CHECK(with("SKEIN_CHECK", "1", [] { return sk::CommOptions().check; }));
  CHECK_FALSE(with("SKEIN_SHARED_MEMORY", "0", [] { return sk::CommOptions().shared_memory; }));
  CHECK_FALSE(with("SKEIN_SHARED_PAGES", "0", [] { return sk::CommOptions().shared_pages; }));
  CHECK(with("SKEIN_NODE_SIZE", "3", [] { return sk::CommOptions().node_size; }) == 3);
  const auto order = [](const char* value) {
    return with("SKEIN_REDUCTION_ORDER", value, [] { return sk::CommOptions().order; });
  };
  CHECK(order("ranks") == sk::ReductionOrder::ranks);
  CHECK(order("native") == sk::ReductionOrder::native);
  CHECK(order("") == sk::ReductionOrder::automatic);
}

TEST_CASE("what is no such number is refused by name", "[core]") {
  for (const char* value : {"abc", "8x", " 8", "8 ", "-3", "nan", "0x10", "1,5"}) {
    CAPTURE(value);
    CHECK_THAT(fault("SKEIN_THREADS", value), Catch::StartsWith(std::string("SKEIN_THREADS is '") + value + "': it has to be"));
    CHECK_THAT(fault("SKEIN_DEADLINE", value), Catch::StartsWith(std::string("SKEIN_DEADLINE is '") + value + "': it has to be"));
  }
  CHECK(fault("SKEIN_DEADLINE", "0") == "SKEIN_DEADLINE is '0': it has to be seconds, more than 0, or inf");
  CHECK_THAT(fault("SKEIN_THREADS", "1.5"), Catch::Contains("a whole number"));
  CHECK(fault("SKEIN_CHECK", "yes") == "SKEIN_CHECK is 'yes': it has to be 0 or 1");
  CHECK_THAT(fault("SKEIN_NODE_SIZE", "-1"), Catch::Contains("SKEIN_NODE_SIZE is '-1'"));
  CHECK(fault("SKEIN_SHARED_PAGES", "2") == "SKEIN_SHARED_PAGES is '2': it has to be 0 or 1");
  CHECK(fault("SKEIN_REDUCTION_ORDER", "mpi") == R"(SKEIN_REDUCTION_ORDER is "mpi": it has to be ranks or native)");
  CHECK(fault("SKEIN_CHECK", "\x1b[2J") == R"(SKEIN_CHECK is '\x1b[2J': it has to be 0 or 1)");
}
