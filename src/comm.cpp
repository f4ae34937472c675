// SPDX-License-Identifier: Apache-2.0
// skein::compiled: the bodies of comm/, but comm/mpi.
#include <skein/comm/collective_call.ipp>
#include <skein/comm/control/client.ipp>
#include <skein/comm/control/control_comm.ipp>
#include <skein/comm/control/coordinator_state.ipp>
#include <skein/comm/control/environment.ipp>
#include <skein/comm/control/file.ipp>
#include <skein/comm/control/rendezvous.ipp>
#include <skein/comm/control/server.ipp>
#include <skein/comm/control/socket.ipp>
#include <skein/comm/control/watch.ipp>
#include <skein/comm/control/wire.ipp>
#include <skein/comm/launch/placement.ipp>
#include <skein/comm/measure.ipp>
#include <skein/comm/messages.ipp>
#include <skein/comm/options.ipp>
#include <skein/comm/self/self_comm.ipp>
#include <skein/comm/sim/delayed.ipp>
#include <skein/comm/sim/options.ipp>
#include <skein/comm/sim/sim_comm.ipp>
#include <skein/comm/sim/tables.ipp>
#include <skein/comm/sim/world.ipp>
#include <skein/comm/thread/engine.ipp>
#include <skein/comm/thread/mailbox.ipp>
#include <skein/comm/thread/team.ipp>
#include <skein/comm/thread/thread_comm.ipp>
#include <skein/comm/wait.ipp>
