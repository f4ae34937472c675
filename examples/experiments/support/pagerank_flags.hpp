// SPDX-License-Identifier: Apache-2.0
// The flags of experiment 06, by hand: a GPU machine that builds 06_pagerank.cu may have no parser of options.
#pragma once
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <type_traits>

#include "pagerank_program.hpp"

namespace experiments {

namespace detail {
/// The whole text as a number within [low, high], or an ArgumentError that names the flag.
template <class T> void set_number(const std::string& flag, const std::string& text, T& value, T low, T high) {
  std::istringstream in(text);
  T read{};
  if ((std::is_unsigned_v<T> && text.find('-') != std::string::npos) || !(in >> read) ||
      in.peek() != std::istringstream::traits_type::eof() || !(read >= low && read <= high)) {
    std::ostringstream range;
    range << low << " to " << high;
    throw sk::ArgumentError(flag + " is \"" + text + "\": a number from " + range.str() + " is wanted");
  }
  value = read;
}
}  // namespace detail

inline const char* pagerank_usage() {
  return "[--graph FILE] [--out RANKS.csv] [--iterations 200] [--nodes 10000] [--p 0.05] [--damping 0.85]\n"
         "       [--start uniform|ones] [--threads 0] [--dense-limit 20000] [--seed 1]\n"
         "FILE is a list of edges, a line each: FROM TO, plain or gzip; without it the graph is drawn at random.";
}

/// Throws ArgumentError for what is no flag, and for a value out of its range.
inline PageRankOptions parse_pagerank(int argc, char** argv) {
  PageRankOptions o;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 == argc) throw sk::ArgumentError("\"" + flag + "\" has no value");
    const std::string value = argv[i + 1];
    if (flag == "--graph") o.graph = value;
    else if (flag == "--out") o.out = value;
    else if (flag == "--start" && (value == "uniform" || value == "ones")) o.start = value;
    else if (flag == "--start") throw sk::ArgumentError("--start is \"" + value + "\": uniform or ones is wanted");
    else if (flag == "--iterations") detail::set_number(flag, value, o.iterations, 1, 1'000'000);
    else if (flag == "--nodes") detail::set_number(flag, value, o.nodes, 2L, 1'000'000L);
    else if (flag == "--p") detail::set_number(flag, value, o.p, 0.0, 0.999);
    else if (flag == "--damping") detail::set_number(flag, value, o.damping, 0.001, 0.999);
    else if (flag == "--threads") detail::set_number(flag, value, o.threads, 0, 1024);
    else if (flag == "--dense-limit") detail::set_number(flag, value, o.dense_limit, 0L, 1'000'000L);
    else if (flag == "--seed") detail::set_number(flag, value, o.seed, std::uint64_t{0}, ~std::uint64_t{0});
    else throw sk::ArgumentError("there is no flag \"" + flag + "\"");
  }
  return o;
}

/// Parses and runs; what is thrown becomes a line and status 2.
inline int pagerank_main(int argc, char** argv, int (*run)(const PageRankOptions&)) {
  try {
    if (argc > 1 && std::string(argv[1]) == "--help") return std::printf("usage: %s %s\n", argv[0], pagerank_usage()) < 0;
    return run(parse_pagerank(argc, argv));
  } catch (const sk::ArgumentError& e) {
    std::fprintf(stderr, "06_pagerank: %s\nusage: %s %s\n", e.what(), argv[0], pagerank_usage());
  } catch (const std::exception& e) { std::fprintf(stderr, "06_pagerank: %s\n", e.what()); }
  return 2;
}

}  // namespace experiments
