// SPDX-License-Identifier: Apache-2.0
// Boost.MPI beside MpiComm: its communicators convert both ways, and objects with Boost.Serialization's serialize() travel over
// any communicator of the host. A header of its own, since Boost.MPI costs 2.5 s of compile time. The archives are Boost's: for
// our own ranks only, never for files of others.
#pragma once
#include <boost/archive/binary_iarchive.hpp>
#include <boost/archive/binary_oarchive.hpp>
#include <boost/mpi/communicator.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "mpi_comm.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
template <> struct Bridge<boost::mpi::communicator> {
  static boost::mpi::communicator make(MPI_Comm c) { return boost::mpi::communicator(c, boost::mpi::comm_attach); }
};

/// An object as bytes, by Boost.Serialization: readable by the same program on the same kind of machine.
template <class T> std::string pack(const T& object) {
  std::ostringstream out(std::ios::binary);
  {
    boost::archive::binary_oarchive archive(out, boost::archive::no_header);
    archive << object;
  }
  return out.str();
}
/// An object of the bytes that pack() made.
template <class T> void unpack(const std::string& bytes, T& object) {
  std::istringstream in(bytes, std::ios::binary);
  boost::archive::binary_iarchive archive(in, boost::archive::no_header);
  archive >> object;
}
}  // namespace comm

/// Root's object, on every rank. Blocking; allocates.
template <class Comm, class T> void broadcast_object(Comm& world, T& object, int root = 0) {
  const std::string bytes = world.broadcast(world.rank() == root ? comm::pack(object) : std::string(), root);
  if (world.rank() != root) comm::unpack(bytes, object);
}

/// The objects of all ranks. Blocking; allocates.
template <class Comm, class T> std::vector<T> all_gather_objects(Comm& world, const T& object) {
  std::vector<T> all;
  for (const std::string& bytes : world.all_gather(comm::pack(object))) comm::unpack(bytes, all.emplace_back());
  return all;
}

/// Sends an object to one rank, which calls recv_object. Blocking as send is; allocates.
template <class Comm, class T> void send_object(Comm& world, const T& object, int to, int tag = 0) {
  const std::string bytes = comm::pack(object);
  std::size_t n = bytes.size();
  world.send(DeviceSpan<std::size_t, Cpu>{&n, 1}, to, tag);
  world.send(bytes, to, tag);
}

/// Receives what send_object sent. Blocking; allocates. Returns the sender.
template <class Comm, class T> int recv_object(Comm& world, T& object, int from, int tag = 0) {
  std::size_t n = 0;
  const int sender = world.recv(DeviceSpan<std::size_t, Cpu>{&n, 1}, from, tag);
  std::string bytes(n, '\0');
  world.recv(bytes, sender, tag);
  comm::unpack(bytes, object);
  return sender;
}

}  // namespace skein::inline SKEIN_ABI
