// SPDX-License-Identifier: Apache-2.0
// skein::compiled_mpi: the bodies of comm/mpi/.
#include <skein/comm/mpi/api.ipp>
#include <skein/comm/mpi/call_history.ipp>
#include <skein/comm/mpi/call_queue.ipp>
#include <skein/comm/mpi/engine.ipp>
#include <skein/comm/mpi/failure_detector.ipp>
#include <skein/comm/mpi/kept_buffers.ipp>
#include <skein/comm/mpi/long_wait.ipp>
#include <skein/comm/mpi/message_ring.ipp>
#include <skein/comm/mpi/level_transport.ipp>
#include <skein/comm/mpi/message_transport.ipp>
#include <skein/comm/mpi/mpi_comm.ipp>
#include <skein/comm/mpi/native_transport.ipp>
#include <skein/comm/mpi/point_to_point.ipp>
#include <skein/comm/mpi/process_watch.ipp>
#include <skein/comm/mpi/same_options.ipp>
#include <skein/comm/mpi/session.ipp>
#include <skein/comm/mpi/signature_check.ipp>
