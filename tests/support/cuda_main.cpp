// SPDX-License-Identifier: Apache-2.0
// Catch2's main of the tests on GPUs: where there is none it says how many it skips, and returns 77. After an error that lasts
// (an illegal address) it names the test case and returns 70: what would follow in this process says nothing.
#define CATCH_CONFIG_RUNNER
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>

#include "lasting_error.hpp"

namespace {
struct StopAtLastingErrors : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ++done_;
    const cudaError_t status = lasting_error();
    if (status == cudaSuccess) return;
    std::printf("\nstopped in test case %ld, \"%s\": the device answers everything with %s\n", done_, stats.testInfo.name.c_str(),
                cudaGetErrorName(status));
    std::fflush(nullptr);
    _exit(70);
  }
  long done_ = 0;
};
}  // namespace
CATCH_REGISTER_LISTENER(StopAtLastingErrors)

int main(int argc, char** argv) {
  Catch::Session session;
  if (const int fault = session.applyCommandLine(argc, argv)) return fault;
  const auto& asked = session.configData();
  int devices = 0;
  const bool lists = asked.listTests || asked.listTags || asked.listTestNamesOnly || asked.listReporters || asked.showHelp;
  if (!lists && (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)) {
    const auto& cases = Catch::getAllTestCasesSorted(session.config());
    std::printf("skipped %zu test cases: no GPU\n",
                Catch::filterTests(cases, session.config().testSpec(), session.config()).size());
    return 77;
  }
  return session.run();
}
