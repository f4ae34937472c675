// SPDX-License-Identifier: Apache-2.0
// Ranks that train weights of their own, as processes: killed or ended by a signal and started again.
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <skein/mpi.hpp>

#include <catch2/catch.hpp>

#include "../support/own_weights_cases.hpp"
#include "../support/temporary_folder.hpp"

namespace sk = skein;
namespace own = support::own_weights;

namespace {
/// By a communicator of its own: one with an exchange under way has failed when that ends. What a training that was disturbed
/// throws.
template <class Make, class Optimizer> std::string fit(const Make& make, const Optimizer& optimizer,
                                                       const own::Disturbed& disturbed, std::vector<double>* outcome = nullptr) {
  sk::MpiComm world{MPI_COMM_WORLD};
  try {
    const std::vector<double> all = own::fit(world, make, optimizer, disturbed);
    if (outcome) *outcome = all;
    return "ended";
  } catch (const own::Killed&) { return "killed"; } catch (const sk::Interrupted&) {
    return "interrupted";
  } catch (const std::exception& e) { return e.what(); }
}
}  // namespace

TEST_CASE("processes with weights of their own that are killed, or ended by a signal, go on with the same bits",
          "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() > 4) return;
  own::some_kinds([&](const char* name, const auto& make, const auto& optimizer) {
    CAPTURE(name, world.rank());
    const support::TemporaryFolder of_rank;
    const std::string folder = world.broadcast(of_rank / "run", 0), ended = folder + "_ended";
    std::vector<double> whole, after;
    CHECK(fit(make, optimizer, {}, &whole) == "ended");
    for (const std::int64_t step : {8, 13}) {  // where an average is under way, a rank may hear of another's exception first
      const std::string end = fit(make, optimizer, {.folder = folder, .killed_at = step});
      CHECK_THAT(end, Catch::Equals("killed") || Catch::Contains("an exception passed through a call that was under way"));
    }
    CHECK(fit(make, optimizer, {.folder = folder}, &after) == "ended");
    CHECK(after == whole);
    CHECK(fit(make, optimizer, {.folder = ended, .signal_at = 9, .every = 0}) == "interrupted");
    CHECK(fit(make, optimizer, {.folder = ended, .every = 0}, &after) == "ended");
    CHECK(after == whole);
    world.barrier();
  });
}
