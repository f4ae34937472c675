// SPDX-License-Identifier: Apache-2.0
// Any text as the file in which ranks meet: what to_text writes, or a FileError.
#include <skein/comm/control/file.hpp>

#include "target.hpp"

namespace control = skein::comm::control;

namespace {
void run(fuzz::Input data) {
  const std::string text(fuzz::words(data));
  try {
    const control::MeetingFile m = control::parse_meeting(text, "fuzz");
    if (m.addresses.empty() || m.size < 0) std::abort();
    const control::MeetingFile again = control::parse_meeting(control::to_text(m), "fuzz");
    if (again.secret != m.secret || again.time != m.time || again.addresses.size() != m.addresses.size()) std::abort();
    for (const control::Address& a : m.addresses)
      if (a.port < 1 || a.port > 65535 || a.host.empty()) std::abort();
  } catch (const skein::FileError& e) {
    if (e.path() != "fuzz") std::abort();
  }
}

std::vector<fuzz::Bytes> seeds() {
  control::MeetingFile m;
  m.secret[3] = 0x5a, m.time = 1'700'000'000, m.size = 4;
  m.addresses = {{"10.0.0.1", 29500}, {"::1", 1}};
  return {fuzz::bytes_of(control::to_text(m))};
}
}  // namespace

SKEIN_FUZZ_TARGET(meeting, run, seeds)
