// SPDX-License-Identifier: Apache-2.0
// Any bytes from a socket, in pieces of any length, from a stranger and from a rank: frames or a CommError; and what frames carry
// (Hello, Heard, Proof, the parts of an answer), and what the coordinator makes of them.
#include <skein/comm/control/coordinator_state.hpp>
#include <skein/comm/control/wire.hpp>

#include "target.hpp"

namespace control = skein::comm::control;

namespace {
void read_payload(std::string_view payload) {
  if (const auto hello = control::unpack_hello(payload); hello && control::pack(*hello) != payload) std::abort();
  if (const auto heard = control::unpack_heard(payload); heard && control::pack(*heard) != payload) std::abort();
  if (const auto proof = control::unpack_proof(payload); proof && control::pack(*proof) != payload) std::abort();
  (void)control::describe_exchange(payload, {});
  try {
    for (std::string_view rest = payload; !rest.empty();) (void)control::take_part(rest);
  } catch (const skein::CommError&) {}
}

void run(fuzz::Input data) {
  if (data.size() < 2) return;
  control::FrameReader reader;
  const bool trusted = data[0] & 1;
  if (trusted) reader.trust();
  control::CoordinatorState coordinator(3);
  const std::size_t piece = 1 + data[1];
  double now = 0;
  try {
    for (std::string_view bytes = fuzz::words(data.subspan(2)); !bytes.empty();
         bytes.remove_prefix(std::min(piece, bytes.size()))) {
      reader.add(bytes.data(), std::min(piece, bytes.size()));
      while (std::optional<control::Frame> f = reader.next()) {
        if (!trusted && f->payload.size() > control::most_from_strangers) std::abort();
        read_payload(f->payload);
        const control::Frame same = *f;
        if (control::FrameReader again; same.payload.size() <= control::most_from_strangers) {
          const std::string encoded = control::encode(same);
          again.add(encoded.data(), encoded.size());
          if (const auto g = again.next(); !g || g->payload != same.payload || g->number != same.number) std::abort();
        }
        coordinator.take(static_cast<int>(same.number % 3), std::move(*f), now);
        coordinator.tick(now += 0.1);
        (void)coordinator.output();
      }
    }
  } catch (const skein::CommError&) {}
}

std::vector<fuzz::Bytes> seeds() {
  using control::Kind;
  std::string parts;
  control::append_part(parts, "of rank 0");
  control::append_part(parts, "");
  const int members[] = {0, 2};
  const std::string group(reinterpret_cast<const char*>(members), sizeof members);
  const std::vector<control::Frame> frames{{Kind::Hello, 0, 0, 0, control::pack(control::Hello{})},
                                           {Kind::Heard, 0, 7, 0, control::pack(control::Heard{})},
                                           {Kind::Proof, 0, 0, 0, control::pack(control::Digest{})},
                                           {Kind::Open, 1, 0, 0, group},
                                           {Kind::Exchange, 0, 1, 5, parts},
                                           {Kind::Exchange, 1, 2, 1, parts},
                                           {Kind::Overdue, 0, 3, 1, "all_reduce"},
                                           {Kind::State, 0, 2, 0, "all_reduce"},
                                           {Kind::Fail, 0, 0, 0, "a rank failed"},
                                           {Kind::Goodbye, 0, 0, 0, {}}};
  std::vector<fuzz::Bytes> all;
  std::string together(2, '\1');
  for (const control::Frame& f : frames) {
    all.push_back(fuzz::bytes_of(std::string(2, '\0') + control::encode(f)));
    together += control::encode(f);
  }
  all.push_back(fuzz::bytes_of(together));
  return all;
}
}  // namespace

SKEIN_FUZZ_TARGET(rendezvous, run, seeds)
