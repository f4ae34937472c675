// SPDX-License-Identifier: Apache-2.0
// The bodies of confusion_matrix.hpp.
#pragma once
#include <algorithm>
#include <utility>

#include "../../draw/svg.hpp"
#include "../../core/atomic_file.hpp"
#include "../text.hpp"
#include "confusion_matrix.hpp"

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE ConfusionMatrix::ConfusionMatrix(int classes) : classes_(classes) {
  if (classes < 1 || classes > 32768)
    throw ArgumentError(skein::text("a confusion matrix of {} classes: 1 to 32768 are possible", classes));
  counts_.resize(static_cast<std::size_t>(classes) * static_cast<std::size_t>(classes));
}

SKEIN_INLINE ConfusionMatrix::ConfusionMatrix(std::vector<std::string> names) : ConfusionMatrix(static_cast<int>(names.size())) {
  names_ = std::move(names);
}

SKEIN_INLINE void ConfusionMatrix::refuse_class(int c) const {
  throw ArgumentError(skein::text("confusion matrix: there is no class {}: classes are numbered from 0 to {}", c, classes_ - 1));
}

SKEIN_INLINE std::string ConfusionMatrix::class_name(int c) const {
  return names_.empty() ? std::to_string(c) : names_[static_cast<std::size_t>(c)];
}

SKEIN_INLINE std::string ConfusionMatrix::text() const {
  std::size_t width = 7;
  for (int c = 0; c < classes_; ++c) width = std::max(width, class_name(c).size() + 1);
  const auto right = [&](std::string& out, const std::string& cell) {
    out.append(cell.size() < width ? width - cell.size() : 1, ' ').append(cell);
  };
  std::string out = std::string(width - 7, ' ') + "true\\as";
  for (int j = 0; j < classes_; ++j) right(out, class_name(j));
  out += "  recall\n";
  for (int i = 0; i < classes_; ++i) {
    right(out, class_name(i));
    for (int j = 0; j < classes_; ++j) right(out, std::to_string(static_cast<long long>(at(i, j))));
    out += "  ";
    if (const double r = recall(i); r == r) append_fixed(out, 100 * r, 1), out += " %";
    else out += "-";
    out += '\n';
  }
  return out;
}

SKEIN_INLINE std::string ConfusionMatrix::svg() const {
  std::size_t longest = 0;
  for (int c = 0; c < classes_; ++c) longest = std::max(longest, class_name(c).size());
  const double cell = std::clamp(600.0 / classes_, 6.0, 56.0),
               names = 30 + 7 * static_cast<double>(std::min<std::size_t>(longest, 30));
  const double left = names + 20, top = 40, side = cell * classes_, width = left + side + 20;
  draw::Svg svg(std::max(width, 220.0), top + side + names + 20);
  svg.words(left + side / 2, 22, "true class by row, predicted class by column", {.anchor = "middle"});
  const int every = std::max(1, static_cast<int>(14 / cell + 0.99));  // names that would overlap are left out
  for (int i = 0; i < classes_; ++i) {
    double all = 0;
    for (int j = 0; j < classes_; ++j) all += at(i, j);
    for (int j = 0; j < classes_; ++j) {
      const double share = all > 0 ? at(i, j) / all : 0, x = left + j * cell, y = top + i * cell;
      svg.rect(x, y, cell, cell, i == j ? draw::palette[0] : draw::palette[3], share);
      if (cell >= 28 && at(i, j) > 0)
        svg.words(x + cell / 2, y + cell / 2 + 4, std::to_string(static_cast<long long>(at(i, j))),
                  {.anchor = "middle", .color = share > 0.5 ? "#fff" : draw::dark});
    }
    if (i % every == 0) {
      svg.words(left - 6, top + (i + 0.5) * cell + 4, class_name(i), {.anchor = "end"});
      svg.words(left + (i + 0.5) * cell + 4, top + side + 6, class_name(i), {.anchor = "end", .upwards = true});
    }
  }
  for (int i = 0; i <= classes_; ++i) {
    svg.line(left, top + i * cell, left + side, top + i * cell, {.color = draw::light});
    svg.line(left + i * cell, top, left + i * cell, top + side, {.color = draw::light});
  }
  return svg.text();
}

SKEIN_INLINE void ConfusionMatrix::write_svg(const std::string& path) const {
  const std::string text = svg();
  AtomicFile file(path);
  file.append(text.data(), text.size());
  file.commit();
}

}  // namespace skein::inline SKEIN_ABI::train
