// SPDX-License-Identifier: Apache-2.0
// The bodies of summary.hpp.
#pragma once
#include <algorithm>

#include "summary.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::nn::detail {

SKEIN_INLINE std::string kind_text(std::string_view kind) {
  std::string t;
  for (std::size_t i = 0; i < kind.size();) {
    std::size_t word = i;
    while (word < kind.size() && (std::isalnum(static_cast<unsigned char>(kind[word])) || kind[word] == '_')) ++word;
    if (word > i && kind.substr(word, 2) == "::") {
      i = word + 2;
      continue;
    }
    if (word == i) ++word;
    t += kind.substr(i, word - i);
    i = word;
  }
  return t;
}

SKEIN_INLINE std::string grouped(long n) {  // 61,706
  std::string t = std::to_string(n);
  for (int i = static_cast<int>(t.size()) - 3; i > 0; i -= 3) t.insert(static_cast<std::size_t>(i), ",");
  return t;
}

SKEIN_INLINE void pad(std::string& to, std::string_view text, std::size_t width, bool right) {
  if (right && text.size() < width) to.append(width - text.size(), ' ');
  to += text;
  if (!right && text.size() < width) to.append(width - text.size(), ' ');
  to += "  ";
}

/// The cells of a row; the last one has no width.
struct SummaryCells {
  static constexpr std::size_t count = 5;
  std::string cells[count], runs;
};
/// Columns as wide as their widest cell, and at least as those of most networks.
inline std::string aligned(const std::vector<SummaryCells>& rows) {
  std::size_t widths[SummaryCells::count] = {12, 44, 14, 12, 14};
  for (const SummaryCells& row : rows)
    for (std::size_t i = 0; i < SummaryCells::count; ++i) widths[i] = std::max(widths[i], row.cells[i].size());
  std::string t;
  for (const SummaryCells& row : rows) {
    for (std::size_t i = 0; i < SummaryCells::count; ++i) pad(t, row.cells[i], widths[i], i > 2);  // numbers to the right
    t += row.runs;
    while (!t.empty() && t.back() == ' ') t.pop_back();
    t += '\n';
  }
  return t;
}
/// The layers, with what runs them.
/// Backward runs its forward once more: where the whole block is frozen it does not.
inline bool runs_again(const std::vector<SummaryRow>& rows, const SummaryRow& of) {
  const auto in_block = [&](const SummaryRow& r) { return r.node->again == of.node->again; };
  return of.node->again && !std::all_of(rows.begin(), rows.end(), [&](const SummaryRow& r) { return !in_block(r) || r.frozen; });
}

inline std::string table_text(const Extents& input, const std::vector<SummaryRow>& rows,
                              const std::vector<ExecutedLayer>& executed) {
  std::vector<SummaryCells> all{{{"name", "layer", "output", "parameters", "flops"}, "runs as"},
                                {{"", "input", joined(input, " x "), "", ""}, ""}};
  std::size_t unit = 0;
  int part = 0;
  for (const SummaryRow& r : rows) {
    const plan::LayerNode& o = *r.node;
    const ExecutedLayer u = unit < executed.size() ? executed[unit] : ExecutedLayer{1, {}};
    TextList runs;
    if (part > 0) runs.add("  with the one above");
    else if (!u.kernel.empty()) runs.add(u.kernel);
    if (part == 0 && u.layer_count > 1) runs.add(text("fused, {} layers", u.layer_count));
    if (r.frozen) runs.add("frozen");
    if (runs_again(rows, r)) runs.add("again in backward");
    all.push_back({{r.name, kind_text(o.kind).substr(0, 44), joined(o.output, " x "),
                    o.logical_parameters ? grouped(o.logical_parameters) : "", o.flops ? grouped(o.flops) : ""},
                   runs.text()});
    if (++part >= u.layer_count) {
      part = 0;
      ++unit;
    }
  }
  return aligned(all);
}

/// ", 9 layers frozen, without backward: 60,856 parameters, 415,320 of these flops" where there are such; `again` becomes what
/// is left of the flops that backward makes once more.
inline std::string frozen_text(const std::vector<SummaryRow>& rows, long& again) {
  long layers = 0, parameters = 0, flops = 0;
  for (const SummaryRow& r : rows)
    if (r.frozen) {
      ++layers, parameters += r.node->logical_parameters;
      if (runs_again(rows, r)) continue;
      flops += r.node->flops;
      if (r.node->again) again -= r.node->flops;
    }
  return layers > 0 ? text(", {} layers frozen, without backward: {} parameters, {} of these flops", layers, grouped(parameters),
                           grouped(flops))
                    : std::string();
}

SKEIN_INLINE std::string summary_text(const Extents& input, const std::vector<SummaryRow>& rows,
                                      const std::vector<ExecutedLayer>& executed, const SummaryTotals& totals) {
  std::string t = table_text(input, rows, executed);
  t += text(
      "{} parameters ({} stored), {} flops forward a sample, {} bytes a sample kept for backward, {} gradient buckets of 128 KiB",
      grouped(totals.parameters), grouped(totals.stored), grouped(totals.flops), grouped(totals.saved_bytes), totals.buckets);
  t += totals.depth_first_block ? text(", runs depth-first in blocks of {} samples", totals.depth_first_block)
                                : ", runs layer by layer";
  long again = totals.again_flops;
  const std::string frozen = frozen_text(rows, again);
  if (again > 0)
    t += text(", {} flops a sample once more in backward ({} % of forward) with {} bytes a sample for one block at a time",
              grouped(again), (100 * again + totals.flops / 2) / totals.flops, grouped(totals.again_bytes));
  return t + frozen + text(", on {}{}\n", totals.device, totals.precision);
}

}  // namespace skein::inline SKEIN_ABI::nn::detail

SKEIN_END_COLD
