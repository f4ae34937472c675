// SPDX-License-Identifier: Apache-2.0
// Catch2's main of the tests on GPUs: where there is none it says how many it skips, and returns 77.
#define CATCH_CONFIG_RUNNER
#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <cstdio>

int main(int argc, char** argv) {
  Catch::Session session;
  if (const int fault = session.applyCommandLine(argc, argv)) return fault;
  const auto& asked = session.configData();
  int devices = 0;
  const bool lists = asked.listTests || asked.listTags || asked.listTestNamesOnly || asked.listReporters || asked.showHelp;
  if (!lists && (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)) {
    const auto& cases = Catch::getAllTestCasesSorted(session.config());
    std::printf("skipped %zu test cases: no GPU\n", Catch::filterTests(cases, session.config().testSpec(), session.config()).size());
    return 77;
  }
  return session.run();
}
