// SPDX-License-Identifier: Apache-2.0
// A network as plain data: its layers, tensors, parameters and buffers, in the order in which forward runs them. nn/
// emits it by one constexpr walk; every plan (buckets, memory, schedules, cost) is an ordinary function over spans of it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "../core/hash.hpp"
#include "../core/shape.hpp"
#include "curvature_block.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::plan {

/// A short string that can live in constant expressions: "7.body.0.weight".
struct Name {
  char text[96] = {};
  int length = 0;
  constexpr void append(std::string_view s) {
    for (char c : s)
      if (length < 95) text[length++] = c;
  }
  constexpr void append(int n) {
    if (n >= 10) append(n / 10);
    append(std::string_view("0123456789").substr(static_cast<std::size_t>(n % 10), 1));
  }
  constexpr operator std::string_view() const { return {text, static_cast<std::size_t>(length)}; }
  friend constexpr bool operator==(const Name& a, std::string_view b) { return std::string_view(a) == b; }
};

/// A link of a path: the number or the label of a child, and its parent. Names are joined on demand.
struct PathPart {
  int parent = -1, index = -1;
  std::string_view label{};
};

/// A row of the parameter table (or of the buffer table).
struct Entry {
  long offset = 0;    ///< of its first scalar in the arena
  long stored = 0;    ///< scalars it occupies there, padding of rows included
  Extents extents{};  ///< logical
  int init = 0;       ///< nn::Init
  long fan_in = 0, fan_out = 0;
  bool decay = true;
  int path = -1;
  int layer = -1;
  std::string_view leaf{};
};

/// One layer at its place.
struct LayerNode {
  std::string_view kind{};
  int in = -1, in2 = -1, out = -1;                  ///< tensors
  std::array<int, 6> more{-1, -1, -1, -1, -1, -1};  ///< of a join of more than two what it reads, too
  int path = -1;
  Extents input{}, output{};
  long parameter = 0, parameters = 0;  ///< stored range: [parameter, parameter + parameters)
  long logical_parameters = 0;
  long saved_for_backward = 0;  ///< scalars a sample kept for backward beside tensors
  long saved_bytes = 0;
  long flops = 0;  ///< forward, a sample
  bool saves_input = false, saves_output = false;
  int again = 0;  ///< not 0: backward runs its forward once more, with the whole block (Recompute) of that number
  std::array<CurvatureBlock, 2> curvature{};
  std::uint64_t options = 0;  ///< a hash of the values of its options; 0: it has none
  /// "Linear" of "Linear<120>".
  constexpr std::string_view bare_kind() const { return kind.substr(0, kind.find('<')); }
};

/// A half-open range of stored scalars.
struct Range {
  long begin = 0, end = 0;
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// "7." for the eighth child of the network; the root has no name.
constexpr void append_path(Name& n, std::span<const PathPart> paths, int p) {
  if (p < 0 || paths[static_cast<std::size_t>(p)].parent < 0) return;
  const PathPart& part = paths[static_cast<std::size_t>(p)];
  append_path(n, paths, part.parent);
  if (part.label.empty()) n.append(part.index);
  else n.append(part.label);
  n.append(".");
}
/// The name of a row of a table: "7.body.0.weight".
constexpr Name name_of(std::span<const PathPart> paths, const Entry& e) {
  Name n;
  append_path(n, paths, e.path);
  n.append(e.leaf);
  return n;
}

/// A network in tables: layers in order, parameters and buffers by name, paths in files, sizes of the edges.
template <int LayerNodes, int Entries, int Buffers, int Paths> struct Program {
  std::array<LayerNode, LayerNodes> layer_nodes{};
  std::array<Entry, Entries> parameter_entries{};
  std::array<Entry, Buffers> buffer_entries{};
  std::array<PathPart, Paths> paths{};
  std::array<long, LayerNodes + 1> tensors{};  ///< scalars a sample; 0 is the input
  int layer_node_count = 0, parameter_count = 0, buffer_count = 0, path_count = 0, tensor_count = 0;
  long stored_parameters = 0, stored_buffers = 0;

  constexpr std::span<const LayerNode> layers() const { return {layer_nodes.data(), static_cast<std::size_t>(layer_node_count)}; }
  constexpr std::span<const Entry> parameters() const {
    return {parameter_entries.data(), static_cast<std::size_t>(parameter_count)};
  }
  constexpr std::span<const Entry> buffers() const { return {buffer_entries.data(), static_cast<std::size_t>(buffer_count)}; }

  constexpr int path(int parent, int index, std::string_view label = {}) {
    paths[static_cast<std::size_t>(path_count)] = {parent, index, label};
    return path_count++;
  }
  constexpr int tensor(long count) {
    tensors[static_cast<std::size_t>(tensor_count)] = count;
    return tensor_count++;
  }
  constexpr std::span<const PathPart> parts() const { return {paths.data(), static_cast<std::size_t>(path_count)}; }
  constexpr Name name(const Entry& e) const { return name_of(parts(), e); }
  constexpr Name name(const LayerNode& o) const {
    Name n;
    append_path(n, parts(), o.path);
    if (n.length > 0) --n.length;  // without the last dot
    n.text[n.length] = 0;
    return n;
  }
};

/// What two ranks must have in common: shapes, offsets, names, what each layer costs and keeps. Values only, no name of a type:
/// ranks that different compilers built meet. (So layers that agree in all of this, such as two activations of the same cost, are
/// not told apart.)
template <class Program> constexpr std::uint64_t fingerprint(const Program& p) {
  Fnv1a f;
  auto number = [&f](long n) { f.add(static_cast<std::uint64_t>(n)); };
  for (const LayerNode& o : p.layers()) {
    f.add(o.input).add(o.output);
    for (const long n : {o.flops, o.logical_parameters, o.saved_for_backward, o.saves_input + 2L * o.saves_output}) number(n);
  }
  for (const Entry& e : p.parameters()) {
    f.add(p.name(e)).add(e.extents);
    for (const long n : {e.offset, long{e.init}, e.fan_in, e.fan_out, long{e.decay}}) number(n);
  }
  for (const Entry& e : p.buffers()) f.add(p.name(e)).add(e.extents);
  return f.value();
}

/// The places of the parameters in their arena: what an optimizer's state for them is laid out by. The same for two inputs of one
/// network that share its weights.
template <class Program> constexpr std::uint64_t layout_hash(const Program& p) {
  Fnv1a f;
  f.add(static_cast<std::uint64_t>(p.stored_parameters));
  for (const Entry& e : p.parameters())
    f.add(e.leaf).add(e.extents).add(static_cast<std::uint64_t>(e.offset)).add(static_cast<std::uint64_t>(e.decay));
  return f.value();
}

}  // namespace skein::inline SKEIN_ABI::plan

SKEIN_END_COLD
