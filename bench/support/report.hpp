// SPDX-License-Identifier: Apache-2.0
// What a bench prints: a table for people, and with --json FILE an object a line. Whether a goal holds is computed here: its
// whole interval must be on its side, or the work must be near enough to the floor of this machine.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "machine.hpp"
#include "output_file.hpp"

namespace bench {

/// A bound for the ratio (for our own figure where there is none), and one for the multiple of the floor: either will do.
struct Goal {
  std::optional<double> bound{}, of_floor{};
  bool at_least = false;
};

/// One figure.
struct Line {
  std::string metric;
  std::optional<double> ours{}, peer{};
  std::string peer_name{}, unit = "ms";
  std::optional<Interval> ratio{};
  std::optional<double> floor{};
  std::optional<double> speedup{}, twice{};  ///< of two workers over one; of two copies of the one-worker case at the same time
  Goal must{}, hope{};
  int threads = 0;
  std::string note{};
  bool accepted = true;  ///< false: no verdict; the note says why

  void add(const std::string& words) { note += (note.empty() ? "" : "; ") + words; }
  std::optional<double> of_floor() const {
    if (ours && floor && *floor > 0) return *ours / *floor;
    return {};
  }
  /// Nothing where it cannot be said.
  std::optional<bool> reaches(const Goal& g) const {
    if (!accepted) return {};
    std::optional<bool> verdict;
    if (g.bound && (ratio || (peer_name.empty() && ours))) {
      const double worst = ratio ? (g.at_least ? ratio->low : ratio->high) : *ours;
      verdict = g.at_least ? worst >= *g.bound : worst <= *g.bound;
    }
    if (g.of_floor && of_floor()) {
      if (*of_floor() <= *g.of_floor) verdict = true;
      else if (!g.bound) verdict = false;
    }
    return verdict;
  }
};

struct Options {
  bool quick = false;
  std::string json{}, only{};  ///< only: one part of a bench that has several
};
/// Ends the program for a wrong argument, and where nothing can be added to FILE: before what is measured for it is lost.
inline Options options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) o.quick = true;
    else if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) o.json = argv[++i];
    else if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) o.only = argv[++i];
    else {
      std::cerr << argv[0] << ": takes --quick, --json FILE and, where it has parts, --only PART, not '" << argv[i] << "'\n";
      std::exit(2);
    }
  }
  try {
    check_can_add("json", o.json);
  } catch (const skein::FileError& e) {
    std::cerr << argv[0] << ": " << e.what() << "\n";
    std::exit(2);
  }
  return o;
}

inline std::string number(double v) {
  char text[48];
  std::snprintf(text, sizeof text, std::fabs(v) >= 1000 && std::fabs(v) < 1e12 ? "%.0f" : "%.4g", v);
  return text;
}
/// A whole number of kB, KiB, MB or MiB: the binary unit where the bytes are whole ones of it.
inline std::string size_in_words(long bytes) {
  const bool kilo = bytes < 1'000'000, binary = bytes % (kilo ? 1L << 10 : 1L << 20) == 0;
  const long unit = kilo ? (binary ? 1L << 10 : 1000) : (binary ? 1L << 20 : 1'000'000);
  return std::to_string(bytes / unit) + (kilo ? binary ? " KiB" : " kB" : binary ? " MiB" : " MB");
}
inline std::string in_words(const Goal& g) {
  std::string t = g.bound ? number(*g.bound) : "";
  if (g.of_floor) t += (t.empty() ? "" : " or ") + number(*g.of_floor) + " f";
  return t;
}

class Report {
 public:
  /// `parts`: what --only may name. Another word ends the program here, before anything is measured.
  Report(std::string bench, Options o, const std::vector<std::string>& parts = {})
      : bench_(std::move(bench)), options_(std::move(o)), before_(load()) {
    refuse_other_than(parts);
    std::cout << "this machine: " << instruction_set() << "; load " << number(before_) << (options_.quick ? "; quick" : "")
              << "\n";
  }
  Report(const Report&) = delete;

  const Options& options() const { return options_; }
  bool quick() const { return options_.quick; }
  /// Nothing of a part is left out: without --quick, and of the part that --only names.
  bool whole() const { return !options_.quick || !options_.only.empty(); }
  /// Prints the figure at once; it goes to the file at the end.
  void add(Line l) {
    std::cout << "  " << l.metric
              << (l.threads ? ", " + std::to_string(l.threads) + (l.threads == 1 ? " thread" : " threads") : "") << ": ";
    if (l.ours) std::cout << number(*l.ours) << " " << l.unit;
    if (l.peer) std::cout << ", " << l.peer_name << " " << number(*l.peer) << " " << l.unit;
    if (l.ratio)
      std::cout << ": " << number(l.ratio->median) << " (" << number(l.ratio->low) << " to " << number(l.ratio->high) << ")";
    if (l.of_floor()) std::cout << ", " << number(*l.of_floor()) << " of the floor";
    if (l.speedup) std::cout << ", " << number(*l.speedup) << " times one worker";
    if (l.twice) std::cout << " (two copies at the same time: " << number(*l.twice) << ")";
    for (const auto& [name, goal] : {std::pair{"must", l.must}, std::pair{"hope", l.hope}})
      if (const std::string words = in_words(goal); !words.empty())
        std::cout << ", " << name << (goal.at_least ? " >= " : " <= ") << words
                  << (l.reaches(goal) ? *l.reaches(goal) ? " yes" : " NO" : " ?");
    std::cout << (l.note.empty() ? "" : "  [" + l.note + "]") << std::endl;
    lines_.push_back(std::move(l));
  }
  /// Every figure so far is on the right side of its must.
  bool holds() const {
    for (const Line& l : lines_)
      if (const std::optional<bool> reached = l.reaches(l.must); reached && !*reached) return false;
    return true;
  }
  void say(const std::string& words) { std::cout << words << std::endl; }
  /// Is this part to run? With --only PART no other one is.
  bool wants(const std::string& part) const { return options_.only.empty() || options_.only == part; }

  /// Writes the file; the exit status: 1 where something was wrong, not where something was slow. A file that does not take the
  /// figures is wrong, and is said.
  [[nodiscard]] int finish(bool right = true) {
    const double after = load();
    std::cout << "load " << number(before_) << " before, " << number(after) << " after" << std::endl;
    if (!options_.json.empty())
      right = write_lines((quick() ? "quick; load " : "load ") + number(before_) + " to " + number(after)) && right;
    return right ? 0 : 1;
  }

 private:
  bool write_lines(const std::string& run) {
    errno = 0;
    std::ofstream out(options_.json, std::ios::app);
    for (Line& l : lines_) {
      l.add(run);
      write(out, l);
    }
    if (out.flush()) return true;
    std::cerr << bench_ << ": " << options_.json << ": " << not_written("json", std::strerror(errno))
              << ". The figures are only in what is printed above" << std::endl;
    return false;
  }
  void refuse_other_than(const std::vector<std::string>& parts) const {
    std::string names;
    for (const std::string& part : parts) {
      if (wants(part)) return;
      names += " " + part;
    }
    if (options_.only.empty()) return;
    std::cerr << bench_ << ": no part '" << options_.only << "'; it has" << (parts.empty() ? " none" : ":" + names) << "\n";
    std::exit(2);
  }
  static std::string quoted(const std::string& s) {
    std::string t = "\"";
    for (char c : s) {
      if (c == '"' || c == '\\') t += '\\';
      t += c == '\n' ? ' ' : c;
    }
    return t + '"';
  }
  static std::string value(std::optional<double> v) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g", v.value_or(0));
    return v && std::isfinite(*v) ? text : "null";
  }
  static std::string value(const Goal& g) { return g.of_floor ? quoted(in_words(g)) : value(g.bound); }
  void write(std::ostream& out, const Line& l) const {
    std::optional<double> ratio, low, high;
    if (l.ratio) ratio = l.ratio->median, low = l.ratio->low, high = l.ratio->high;
    const std::optional<bool> holds = l.reaches(l.must);
    out << "{\"bench\": " << quoted(bench_) << ", \"metric\": " << quoted(l.metric) << ", \"ours\": " << value(l.ours)
        << ", \"peer\": " << value(l.peer) << ", \"peer_name\": " << (l.peer_name.empty() ? "null" : quoted(l.peer_name))
        << ", \"unit\": " << quoted(l.unit) << ", \"ratio\": " << value(ratio) << ", \"low\": " << value(low)
        << ", \"high\": " << value(high) << ", \"floor\": " << value(l.floor) << ", \"of_floor\": " << value(l.of_floor())
        << ", \"speedup\": " << value(l.speedup) << ", \"twice\": " << value(l.twice) << ", \"must\": " << value(l.must)
        << ", \"hope\": " << value(l.hope) << ", \"holds\": " << (holds ? *holds ? "true" : "false" : "null")
        << ", \"threads\": " << (l.threads ? std::to_string(l.threads) : "null") << ", \"isa\": " << quoted(instruction_set())
        << ", \"note\": " << quoted(l.note) << "}\n";
  }

  std::string bench_;
  Options options_;
  std::vector<Line> lines_;
  double before_;
};

}  // namespace bench
