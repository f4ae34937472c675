// SPDX-License-Identifier: Apache-2.0
// The bodies of weights_npz.hpp.
#pragma once
#include <algorithm>
#include <cmath>

#include "weights_npz.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE bool is_kind(const plan::LayerNode& node, std::string_view name) {
  return node.kind.starts_with(name) && (node.kind.size() == name.size() || node.kind[name.size()] == '<');
}

/// The image whose values the features of a node's input are, in the order (height, width, channels): behind a Flatten, and
/// layers that leave each feature in its place. An empty shape where they are of no image.
SKEIN_INLINE Extents image_behind(std::span<const plan::LayerNode> operations, const plan::LayerNode& node) {
  for (int tensor = node.in; node.input.flat();) {
    const auto writer =
        std::find_if(operations.begin(), operations.end(), [&](const plan::LayerNode& o) { return o.out == tensor; });
    if (writer == operations.end()) break;
    if (is_kind(*writer, "Flatten")) return writer->input;
    const bool stays = writer->logical_parameters == 0 || is_kind(*writer, "BatchNorm") || is_kind(*writer, "LayerNorm") ||
                       is_kind(*writer, "RmsNorm");
    if (!stays || !(writer->input == writer->output) || writer->in2 >= 0) break;
    tensor = writer->in;
  }
  return {};
}

SKEIN_INLINE std::array<long, 4> dense(const std::array<long, 4>& extents) {
  return {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
}

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

SKEIN_INLINE ArrayInFile array_in_file(std::span<const plan::LayerNode> operations, const plan::Entry& e, WeightLayout layout) {
  ArrayInFile a;
  const int rank = e.extents.rank;
  for (int i = 0; i < rank; ++i) a.extents[static_cast<std::size_t>(4 - rank + i)] = e.extents[i];
  a.file = dense(a.extents);
  a.arena = a.file;
  const long pitch = row_pitch(e.extents.last());  // rows are padded, whatever stands before them
  for (int i = 0; i < 3; ++i)
    a.arena[static_cast<std::size_t>(i)] = a.arena[static_cast<std::size_t>(i)] / e.extents.last() * pitch;
  a.shape.assign(a.extents.begin() + (4 - rank), a.extents.end());
  if (layout == WeightLayout::skein || e.operation < 0) return a;

  const plan::LayerNode& node = operations[static_cast<std::size_t>(e.operation)];
  const Extents image = image_behind(operations, node);
  const bool linear = is_kind(node, "Linear") || is_kind(node, "EachPosition"),
             recurrent = is_kind(node, "Rnn") || is_kind(node, "Lstm") || is_kind(node, "Gru");
  if (!convolution_of_pytorch(node, rank, a) && (linear || recurrent) && rank == 2) {  // (in, out) becomes (out, in)
    const long in = a.extents[2], out = a.extents[3];
    a.shape = {out, in};
    a.file = {0, 0, 1, in};
  }
  const bool vector = rank == 1 && !linear;  // of a normalisation, a value a feature
  if (image.rank == 3 && (linear ? rank == 2 : vector && e.extents.last() == image.count())) {
    const long h = image[0], w = image[1], c = image[2], out = linear ? a.extents[3] : 1, row = linear ? h * w * c : 1;
    a.extents = {h, w, c, out};  // features (height, width, channels) become (channels, height, width)
    a.arena = linear ? std::array<long, 4>{w * c * pitch, c * pitch, pitch, 1} : std::array<long, 4>{w * c, c, 1, 1};
    a.file = {w, 1, h * w, row};
  }
  return a;
}

SKEIN_INLINE std::string comment_of(WeightLayout layout) {
  return layout == WeightLayout::pytorch ? "skein: weights in PyTorch's layout" : "skein: weights in skein's layout";
}
SKEIN_INLINE void check_layout(const std::string& path, std::string_view comment, WeightLayout asked) {
  const WeightLayout other = asked == WeightLayout::skein ? WeightLayout::pytorch : WeightLayout::skein;
  if (comment != comment_of(other)) return;
  throw FileError(
      path, -1,
      asked == WeightLayout::skein
          ? "was saved in PyTorch's layout, in which the weights of square layers are transposed: load it with {.layout "
            "= WeightLayout::pytorch}"
          : "was saved in skein's layout, in which the weights of square layers are transposed: load it without "
            ".layout = WeightLayout::pytorch");
}

SKEIN_INLINE std::string tuple_text(std::span<const long> extents) {
  std::string text = "(";
  for (std::size_t i = 0; i < extents.size(); ++i) text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + ")";
}

SKEIN_INLINE void check_shape(const std::string& path, std::string_view name, std::span<const long> found,
                              const ArrayInFile& wanted) {
  if (std::equal(found.begin(), found.end(), wanted.shape.begin(), wanted.shape.end())) return;
  throw FileError(path, -1,
                  "the array '" + std::string(name) + "' has the shape " + tuple_text(found) + ", the model's is " +
                      tuple_text({wanted.shape.data(), wanted.shape.size()}) +
                      ": it is another network's, or in the other layout (WeightLayout::pytorch)");
}

/// "'0.weight', '0.bias', '2.weight', ...".
SKEIN_INLINE std::string some_of(const std::vector<std::string>& names) {
  std::string text = names.empty() ? "none" : "";
  for (std::size_t i = 0; i < names.size() && i < 3; ++i) text += (i > 0 ? ", '" : "'") + names[i] + "'";
  return names.size() > 3 ? text + ", ..." : text;
}

SKEIN_INLINE void check_names(const std::string& path, const std::vector<std::string>& found,
                              const std::vector<std::string>& known, bool partial) {
  if (partial) {
    if (std::find_first_of(found.begin(), found.end(), known.begin(), known.end()) == found.end())
      throw FileError(path, -1,
                      "has none of the model's arrays, and {.partial = true} would load nothing: the file has " + some_of(found) +
                          ", the model " + some_of(known) + ": save the file under the names of sk::summary(model)");
    return;
  }
  for (const std::string& name : found)
    if (std::find(known.begin(), known.end(), name) == known.end() && !name.ends_with("num_batches_tracked"))
      throw FileError(
          path, -1,
          "has the array '" + name +
              "', which is none of the model's: load it with {.partial = true}, or see sk::summary(model) for its names");
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
