// SPDX-License-Identifier: Apache-2.0
// The bodies of weights_npz.hpp.
#pragma once
#include <algorithm>
#include <cmath>

#include "../core/text.hpp"
#include "../optim/groups.hpp"
#include "feature_order.hpp"
#include "weights_npz.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// The weight of a convolution, (window, in, out), becomes (out, in, window). False where it is another array.
SKEIN_INLINE bool convolution_of_pytorch(const plan::LayerNode& node, int rank, ArrayInFile& a) {
  const auto [height, window, in, out] = a.extents;
  if ((is_kind(node, "Conv2d") || is_kind(node, "ConvTranspose2d")) && rank == 4) {
    a.shape = {out, in, height, window};
  } else if (is_kind(node, "Conv1d") && rank == 3) {
    a.shape = {out, in, window};
  } else if (is_kind(node, "Conv3d") && rank == 3) {
    const long side = std::lround(std::cbrt(static_cast<double>(window)));
    a.shape = {out, in, side, side, side};
  } else {
    return false;
  }
  a.file = {window, 1, height * window, in * height * window};
  return true;
}

[[noreturn]] SKEIN_INLINE void throw_no_place(const std::string& path, std::string_view name, const std::string& why) {
  throw FileError(path, -1,
                  "the array '" + std::string(name) + "' has no place in PyTorch's layout: " + why +
                      ", or leave out .layout = WeightLayout::pytorch");
}
/// Throws the FileError of features that a Reshape makes an image of.
[[noreturn]] SKEIN_INLINE void throw_image_lost(const std::string& path, std::string_view name, const plan::LayerNode& layer) {
  throw_no_place(path, name,
                 "its features become an image through the layer " + std::string(layer.kind) +
                     ", before which their order in PyTorch is not known: let a Linear stand directly before a Reshape");
}
/// An array with a value, or a row, a feature: features (height, width, channels) become (channels, height, width).
SKEIN_INLINE void channels_first(ArrayInFile& a, const Extents& image, long out, long pitch) {
  const long h = image[0], w = image[1], c = image[2], row = out > 0 ? h * w * c : 1;
  a.extents = {h, w, c, std::max(1L, out)};
  a.arena = out > 0 ? std::array<long, 4>{w * c * pitch, c * pitch, pitch, 1} : std::array<long, 4>{w * c, c, 1, 1};
  a.file = {w, 1, h * w, row};
}

/// The columns of a matrix likewise.
SKEIN_INLINE void image_of_columns(ArrayInFile& a, const Extents& image) {
  const long h = image[0], w = image[1], c = image[2], rows = a.extents[2];
  a.arena = {a.arena[2], w * c, c, 1};
  a.file = {1, w * rows, rows, h * w * rows};
  a.extents = {rows, h, w, c};
}

/// Where the features that it reads are the values of an image, or those that it writes become such, an array of a Linear, a
/// recurrent layer or a normalisation has them in PyTorch's order. No array has a place whose layer reads a lost order.
SKEIN_INLINE void features_in_order(ArrayInFile& a, std::span<const plan::LayerNode> layers, const plan::Entry& e,
                                    const std::string& path, std::string_view name) {
  const auto at = static_cast<std::size_t>(e.layer);
  const plan::LayerNode& node = layers[at];
  const bool matrix = is_linear(node) && e.extents.rank == 2, vector = is_normalization(node);
  const FeatureOrder read = order_before(layers, at), before = matrix || vector ? read : FeatureOrder{},
                     behind =
                         is_linear(node) || is_recurrent(node) || vector ? order_behind_of_image(layers, at) : FeatureOrder{};
  if (read.lost)
    throw_no_place(path, name,
                   "features of a flattened image reach it through the layer " + std::string(read.lost->kind) +
                       ", behind which their order in PyTorch is not known: let a Linear stand before that layer");
  if (behind.lost) throw_image_lost(path, name, *behind.lost);
  const bool both = !before.none() && !behind.none();
  if (!behind.none() &&
      (is_recurrent(node) || (vector && !leaves_in_place(node)) || (both && matrix) || (both && !(before.image == behind.image))))
    throw_image_lost(path, name, *behind.made_by);
  if (matrix && !behind.none()) image_of_columns(a, behind.image);
  else if (!before.none()) channels_first(a, before.image, matrix ? a.extents[3] : 0, row_pitch(e.extents.last()));
  else if (!behind.none()) channels_first(a, behind.image, 0, 0);
}

SKEIN_INLINE ArrayInFile array_in_file(std::span<const plan::LayerNode> layers, const plan::Entry& e, WeightLayout layout,
                                       const std::string& path, std::string_view name) {
  ArrayInFile a;
  const int rank = e.extents.rank;
  for (int i = 0; i < rank; ++i) a.extents[static_cast<std::size_t>(4 - rank + i)] = e.extents[i];
  a.file.fill(1);
  for (std::size_t i = 3; i-- > 0;) a.file[i] = a.file[i + 1] * a.extents[i + 1];
  a.arena = a.file;
  const long pitch = row_pitch(e.extents.last());  // rows are padded, whatever stands before them
  for (int i = 0; i < 3; ++i)
    a.arena[static_cast<std::size_t>(i)] = a.arena[static_cast<std::size_t>(i)] / e.extents.last() * pitch;
  a.shape.assign(a.extents.begin() + (4 - rank), a.extents.end());
  if (layout == WeightLayout::skein || e.layer < 0) return a;

  const plan::LayerNode& node = layers[static_cast<std::size_t>(e.layer)];
  const bool matrix = (is_linear(node) || is_recurrent(node)) && rank == 2;
  if (!convolution_of_pytorch(node, rank, a) && matrix) {  // (in, out) becomes (out, in)
    const long in = a.extents[2], out = a.extents[3];
    a.shape = {out, in};
    a.file = {0, 0, 1, in};
  }
  features_in_order(a, layers, e, path, name);
  return a;
}

SKEIN_INLINE std::string comment_of(WeightLayout layout) {
  return layout == WeightLayout::pytorch ? "skein: weights in PyTorch's layout" : "skein: weights in skein's layout";
}
SKEIN_INLINE void check_layout(const std::string& path, std::string_view comment, WeightLayout asked) {
  const bool torch = asked == WeightLayout::skein;  // it is in the other one
  if (comment != comment_of(torch ? WeightLayout::pytorch : WeightLayout::skein)) return;
  throw FileError(path, -1,
                  text("was saved in {} layout, in which the weights of square layers are transposed: load it with{}",
                       torch ? "PyTorch's" : "skein's",
                       torch ? " {.layout = WeightLayout::pytorch}" : "out .layout = WeightLayout::pytorch"));
}

SKEIN_INLINE std::string name_in_file(std::span<const plan::LayerNode> layers, const plan::Entry& e, WeightLayout layout,
                                      std::string_view name) {
  const bool numbered =
      layout == WeightLayout::pytorch && e.layer >= 0 && is_recurrent(layers[static_cast<std::size_t>(e.layer)]);
  return std::string(name) + (numbered ? "_l0" : "");
}
SKEIN_INLINE std::vector<std::string> names_in_model(std::vector<std::string> found,
                                                     const std::vector<std::pair<std::string, std::string>>& renamed) {
  for (const auto& [name, stored] : renamed) std::replace(found.begin(), found.end(), stored, name);
  return found;
}

SKEIN_INLINE std::vector<std::string> names_of_arrays(std::span<const plan::Entry> parameters,
                                                      std::span<const plan::Entry> buffers,
                                                      std::span<const plan::PathPart> paths) {
  std::vector<std::string> names;
  for (const auto& entries : {parameters, buffers})
    for (const plan::Entry& e : entries) names.emplace_back(std::string_view(plan::name_of(paths, e)));
  return names;
}

SKEIN_INLINE bool is_excepted(const WeightOptions& options, std::string_view name) {
  return !options.except.empty() && optim::matches(options.except, name);
}

/// How to load all other arrays: without this one's layer, or without this one where it is of none. Empty: there are no others.
SKEIN_INLINE std::string advice_without(const std::string& name, const std::vector<std::string>& known) {
  const std::string layer = name.substr(0, name.rfind('.') + 1), pattern = layer.empty() ? name : layer + "*";
  const bool others = std::any_of(known.begin(), known.end(), [&](const std::string& n) { return !optim::matches(pattern, n); });
  return others ? "; {.except = \"" + pattern + "\"} leaves it out" : "";
}

SKEIN_INLINE void check_shape(const std::string& path, const std::string& name, std::span<const long> found,
                              const ArrayInFile& wanted, const std::vector<std::string>& known) {
  if (std::equal(found.begin(), found.end(), wanted.shape.begin(), wanted.shape.end())) return;
  const auto shape = [](const auto& e) { return skein::detail::shape_text(e.data(), static_cast<int>(e.size())); };
  throw FileError(path, -1,
                  "the array '" + name + "' has the shape " + shape(found) + ", the model's is " + shape(wanted.shape) +
                      ": it is another network's, or in the other layout (WeightLayout::pytorch)" + advice_without(name, known));
}

/// "'0.weight', '0.bias', '2.weight', ...".
SKEIN_INLINE std::string some_of(const std::vector<std::string>& names) {
  std::string text = names.empty() ? "none" : "";
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i > 0 ? ", '" : "'") + names[i] + "'";
  return names.size() > 3 ? text + ", ..." : text;
}

SKEIN_INLINE void check_names(const std::string& path, std::vector<std::string> found, std::vector<std::string> known,
                              const WeightOptions& options) {
  const auto left = [&](const std::string& n) { return is_excepted(options, n) || n.ends_with("num_batches_tracked"); };
  const std::size_t all = known.size();
  std::erase_if(known, left), std::erase_if(found, left);
  if (!options.except.empty() && (known.size() == all || known.empty()))
    throw ArgumentError("load_npz: .except = \"" + options.except + "\" is the name of " + (known.empty() ? "all" : "none") +
                        " of the model's arrays");
  const auto in = [](const std::vector<std::string>& names) {
    return [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  };
  if ((options.partial || !known.empty()) && std::none_of(found.begin(), found.end(), in(known)))
    throw FileError(path, -1,
                    "has none of the model's arrays" +
                        std::string(options.partial ? ", and {.partial = true} would load nothing" : "") + ": the file has " +
                        some_of(found) + ", the model " + some_of(known) +
                        ": save the file under the names of sk::summary(model)");
  std::vector<std::string> lacking = known, beyond = found;
  std::erase_if(lacking, in(found)), std::erase_if(beyond, in(known));
  if (options.partial || (lacking.empty() && beyond.empty())) return;
  throw FileError(
      path, -1,
      (lacking.empty() ? "has" : "has no array " + some_of(lacking) + (beyond.empty() ? "" : ", but")) +
          (beyond.empty() ? ", which the model has" : " the array " + some_of(beyond) + ", which is none of the model's") +
          ": load it with {.partial = true}, or see sk::summary(model) for its names");
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
