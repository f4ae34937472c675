// expect: a communicator has compute(double seconds), and declares comm::Capability::computes: both or neither
// SPDX-License-Identifier: Apache-2.0
#include <skein/comm/sim/sim_comm.hpp>

namespace sk = skein;

/// Declares what is inside; hands on what it thinks of.
template <class Inner> struct Noted : sk::comm::Messages<Noted<Inner>, sk::Cpu>,
#ifdef SKEIN_TWIN
                                      sk::comm::ForwardsTo<Inner> {
  explicit Noted(Inner& inner) : sk::comm::ForwardsTo<Inner>(inner), comm(&inner) {}
#else
                                      sk::comm::ForwardsTo<Inner, sk::comm::Capability::computes> {
  static constexpr sk::comm::Capabilities capabilities = sk::comm::capabilities_of<Inner> - sk::comm::Capability::splits;
  explicit Noted(Inner& inner) : sk::comm::ForwardsTo<Inner, sk::comm::Capability::computes>(inner), comm(&inner) {}
#endif
  static constexpr std::string_view name = "Noted";
  using engine_type = typename Inner::engine_type;
  template <class T, class Op> static constexpr bool reduces = Inner::template reduces<T, Op>;
  int rank() const { return comm->rank(); }
  int size() const { return comm->size(); }
  engine_type& engine() { return comm->engine(); }
  Inner* comm;
};

int main() { sk::assert_communicator<Noted<sk::SimComm>>(); }
