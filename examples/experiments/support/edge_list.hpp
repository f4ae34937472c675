// SPDX-License-Identifier: Apache-2.0
// Directed graphs as lists of edges, for the experiments: read from a text ("from to" a line, # for comments, as SNAP publishes
// them, plain or gzip), or drawn at random. What comes from a file is not trusted: every fault is a FileError with its line, its
// byte and how to mend it.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <skein/core/random.hpp>
#include <skein/data/byte_source.hpp>

namespace experiments {
namespace sk = skein;

/// Nodes 0 ... nodes() - 1; edge k goes from from[k] to to[k]. `names` are the numbers of the nodes in the file, rising.
struct EdgeList {
  std::vector<std::int64_t> names;
  std::vector<std::int32_t> from, to;

  long nodes() const { return static_cast<long>(names.size()); }
  long edges() const { return static_cast<long>(from.size()); }
  /// Nodes of these edges alone, numbered in the order of their names.
  static EdgeList of(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to) {
    EdgeList g;
    g.names = from;
    g.names.insert(g.names.end(), to.begin(), to.end());
    std::sort(g.names.begin(), g.names.end());
    g.names.erase(std::unique(g.names.begin(), g.names.end()), g.names.end());
    if (g.names.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw sk::ArgumentError("a graph of " + std::to_string(g.names.size()) + " nodes: at most 2,147,483,647 are taken");
    const auto number = [&](std::int64_t name) {
      return static_cast<std::int32_t>(std::lower_bound(g.names.begin(), g.names.end(), name) - g.names.begin());
    };
    for (std::size_t k = 0; k < from.size(); ++k) g.from.push_back(number(from[k])), g.to.push_back(number(to[k]));
    return g;
  }
};

/// Reads edges out of a text; `path` stands in messages. Spaces, tabs and commas part the two numbers; lines end in LF or CR LF.
inline EdgeList parse_edge_list(std::string_view text, const std::string& path) {
  std::vector<std::int64_t> from, to;
  long line = 0;
  for (std::size_t at = 0; at < text.size();) {
    ++line;
    const std::size_t begin = at, end = std::min(text.find('\n', at), text.size());
    at = end + 1;
    const auto fail = [&](std::size_t place, const std::string& what) {
      throw sk::FileError(path, static_cast<long long>(place),
                          "line " + std::to_string(line) + ": " + what + "; an edge is two numbers of nodes, as in \"30 1412\"");
    };
    std::int64_t numbers[2] = {};
    int found = 0;
    std::size_t place = begin;
    const auto apart = [](char c) { return c == ' ' || c == '\t' || c == ',' || c == '\r'; };
    while (true) {
      while (place < end && apart(text[place])) ++place;
      if (place == end || (found == 0 && text[place] == '#')) break;
      std::size_t stop = place;
      while (stop < end && !apart(text[stop])) ++stop;
      std::string shown;
      for (const char c : text.substr(place, std::min<std::size_t>(stop - place, 40))) shown += c >= 32 && c < 127 ? c : '?';
      if (found == 2) fail(place, "\"" + shown + "\" stands behind an edge (weights are not taken)");
      const auto [rest, error] = std::from_chars(text.data() + place, text.data() + stop, numbers[found]);
      if (error == std::errc::result_out_of_range) fail(place, "\"" + shown + "\" does not fit 64 bits");
      if (error != std::errc{} || rest != text.data() + stop) fail(place, "\"" + shown + "\" is no whole number");
      if (numbers[found] < 0) fail(place, "\"" + shown + "\" is negative");
      ++found;
      place = stop;
    }
    if (found == 1) fail(begin, "has one number");
    if (found == 2) from.push_back(numbers[0]), to.push_back(numbers[1]);
  }
  if (from.empty())
    throw sk::FileError(path, 0,
                        "line " + std::to_string(line) + ", the last: there is no edge in the file; a line is \"from to\"");
  return EdgeList::of(from, to);
}

/// Reads a file, plain or gzip, of at most `limit` bytes.
inline EdgeList read_edge_list(const std::string& path, std::uint64_t limit = std::uint64_t{1} << 32) {
  sk::data::ByteSource source(path);
  constexpr std::size_t piece = std::size_t{1} << 20;
  std::string text;
  for (std::size_t got = piece; got == piece;) {
    const std::size_t done = text.size();
    text.resize(done + piece);
    got = source.read(text.data() + done, piece);
    text.resize(done + got);
    if (text.size() > limit) source.fail(source.offset(), "is larger than the limit of " + std::to_string(limit) + " bytes");
  }
  return parse_edge_list(text, path);
}

/// Each pair of nodes is joined, in both directions, with probability p; and each i links to i + 1, the last to the first. Pairs
/// are skipped by geometric steps (Batagelj and Brandes, "Efficient generation of large random networks", 2005).
inline EdgeList random_graph(long nodes, double p, sk::Seed seed) {
  if (nodes < 2) throw sk::ArgumentError("a random graph of " + std::to_string(nodes) + " nodes: the ring needs at least 2");
  if (!(p >= 0 && p < 1)) throw sk::ArgumentError("an edge probability of " + std::to_string(p) + ": it lies in [0, 1)");
  EdgeList g;
  for (long i = 0; i < nodes; ++i) g.names.push_back(i);
  const auto add = [&](long i, long j) {
    g.from.push_back(static_cast<std::int32_t>(i)), g.to.push_back(static_cast<std::int32_t>(j));
  };
  for (long i = 0; i < nodes; ++i) add(i, (i + 1) % nodes);
  if (p == 0) return g;
  const double log_q = std::log1p(-p), most = 1e18;  // of a step, which is a whole number: more than there are pairs
  long v = 1, w = -1;                                // pairs (v, w), w < v
  for (std::uint64_t draw = 0; v < nodes; ++draw) {
    const double logarithm = std::log1p(-static_cast<double>(sk::random_uniform(seed.value, 1, draw)));
    w += 1 + static_cast<long>(std::min(logarithm / log_q, most));
    while (w >= v && v < nodes) w -= v++;
    if (v < nodes) add(v, w), add(w, v);
  }
  return g;
}

}  // namespace experiments
