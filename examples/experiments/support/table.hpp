// SPDX-License-Identifier: Apache-2.0
// A table for people: the first column to the left, the others to the right, each as wide as its widest cell. And cells: numbers
// with as many digits as one reads, seconds, the interval of a ratio.
//
//     Table table{{"gradients every", "seconds", "the tutorial's"}};
//     table.row({"2 epochs", cell(1.83), "183"});
//     std::fputs(table.text().c_str(), stdout);
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace experiments {

/// Three significant digits, whole numbers from 1000 on; "-" for what is not a number.
inline std::string cell(double v) {
  char text[40];
  if (!std::isfinite(v)) return "-";
  std::snprintf(text, sizeof text, std::fabs(v) >= 1000 && std::fabs(v) < 1e12 ? "%.0f" : "%.3g", v);
  return text;
}
/// "1.02 (0.99 - 1.05)".
inline std::string cell(double median, double low, double high) {
  char text[80];
  std::snprintf(text, sizeof text, "%.3f (%.3f - %.3f)", median, low, high);
  return text;
}
struct MeanAndDeviation {
  double mean = 0, deviation = 0;  // of the sample: n - 1
};
inline MeanAndDeviation mean_and_deviation(const std::vector<double>& values) {
  MeanAndDeviation m;
  for (const double v : values) m.mean += v / static_cast<double>(values.size());
  for (const double v : values) m.deviation += (v - m.mean) * (v - m.mean);
  m.deviation = values.size() > 1 ? std::sqrt(m.deviation / static_cast<double>(values.size() - 1)) : 0;
  return m;
}
/// The mean of what several seeds gave, and how far they scatter: "0.041 +- 0.002".
inline std::string cell(const std::vector<double>& values) {
  if (values.empty()) return "-";
  const MeanAndDeviation m = mean_and_deviation(values);
  return values.size() == 1 ? cell(m.mean) : cell(m.mean) + " +- " + cell(m.deviation);
}
/// What several seeds gave, without those whose training diverged: these have no number.
inline std::vector<double> numbers_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  return values;
}
/// The first place from which on every value is at least `share` of the largest; the number of values: not even the last is.
inline std::size_t lasts_from(const std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const double least = share * *std::max_element(values.begin(), values.end());
  const auto below = std::find_if(values.rbegin(), values.rend(), [&](double v) { return v < least; });
  return static_cast<std::size_t>(values.rend() - below);
}
/// How many of the trainings diverged: "2 of 3 diverged", "diverged" where there was one; empty: none.
inline std::string diverged(const std::vector<double>& values) {
  const std::size_t lost = values.size() - numbers_of(values).size();
  if (lost == 0) return "";
  return values.size() == 1 ? "diverged" : std::to_string(lost) + " of " + std::to_string(values.size()) + " diverged";
}
/// As cell(values), of the trainings that did not diverge, and how many did: "0.9 +- 0.1 (1 of 3 diverged)".
inline std::string cell_of_trained(const std::vector<double>& values) {
  const std::vector<double> numbers = numbers_of(values);
  const std::string lost = diverged(values);
  if (numbers.empty()) return lost.empty() ? "-" : lost;
  return cell(numbers) + (lost.empty() ? "" : " (" + lost + ")");
}

class Table {
 public:
  explicit Table(std::vector<std::string> heads) { rows_.push_back(std::move(heads)); }
  /// Cells that are missing are empty; those beyond the heads have none.
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<std::size_t> wide;
    for (const auto& cells : rows_)
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i == wide.size()) wide.push_back(0);
        wide[i] = std::max(wide[i], cells[i].size());
      }
    std::string all;
    for (const auto& cells : rows_) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string space(wide[i] - cells[i].size(), ' ');
        line += i == 0 ? cells[i] + space : "  " + space + cells[i];
      }
      line.erase(line.find_last_not_of(' ') + 1);
      all += line + "\n";
    }
    return all;
  }
  void print() const {
    std::fputs(text().c_str(), stdout);
    std::fflush(stdout);
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace experiments
