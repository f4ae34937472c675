// SPDX-License-Identifier: Apache-2.0
// The bodies of feature_order.hpp.
#pragma once
#include <algorithm>

#include "feature_order.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE bool is_kind(const plan::LayerNode& node, std::string_view name) { return node.bare_kind() == name; }

SKEIN_INLINE bool is_normalization(const plan::LayerNode& node) {
  return is_kind(node, "BatchNorm") || is_kind(node, "LayerNorm") || is_kind(node, "RmsNorm") || is_kind(node, "GroupNorm");
}
SKEIN_INLINE bool is_linear(const plan::LayerNode& node) {  // "Linear<65>", "EachPosition<skein::nn::Linear<65> >"
  if (!is_kind(node, "EachPosition")) return is_kind(node, "Linear");
  const std::string_view all = node.kind.substr(node.kind.find('<') + 1), inner = all.substr(0, all.find('<'));
  return inner.substr(inner.rfind(':') + 1) == "Linear";
}
SKEIN_INLINE bool is_recurrent(const plan::LayerNode& node) {
  return is_kind(node, "Rnn") || is_kind(node, "Lstm") || is_kind(node, "Gru");
}
SKEIN_INLINE bool leaves_in_place(const plan::LayerNode& node) {
  if (is_kind(node, "GroupNorm")) return node.saved_for_backward == 2;  // mean and deviation of one group
  return is_normalization(node) || (node.logical_parameters == 0 && !is_kind(node, "Concat"));
}

/// The tensors that layer `at` reads: of a Concat the ends of its branches, which nothing else reads.
SKEIN_INLINE std::vector<int> tensors_read(std::span<const plan::LayerNode> layers, std::size_t at) {
  const plan::LayerNode& node = layers[at];
  std::vector<int> found;
  if (node.in >= 0) found.push_back(node.in);
  if (node.in2 >= 0) found.push_back(node.in2);
  for (const int tensor : node.more)
    if (tensor >= 0) found.push_back(tensor);
  if (!is_kind(node, "Concat")) return found;
  for (std::size_t i = at; i-- > 0 && layers[i].out != node.in;) {
    const int tensor = layers[i].out;
    if (std::none_of(layers.begin(), layers.end(), [&](const plan::LayerNode& o) { return o.in == tensor || o.in2 == tensor; }))
      found.push_back(tensor);
  }
  return found;
}

/// The order of features that are the values of an image; none where it is PyTorch's too.
SKEIN_INLINE FeatureOrder order_of_image(const Extents& image, const plan::LayerNode& made_by) {
  return image[0] * image[1] > 1 && image[2] > 1 ? FeatureOrder{.image = image, .made_by = &made_by} : FeatureOrder{};
}
/// It makes a row of an image, or an image of a row, of which an Input of a Graph is a part.
SKEIN_INLINE bool flattens(const plan::LayerNode& node) {
  return (is_kind(node, "Flatten") || is_kind(node, "Reshape")) && node.input.rank == 3 && node.output.flat();
}
SKEIN_INLINE bool unflattens(const plan::LayerNode& node) {
  return (is_kind(node, "input") || (is_kind(node, "Reshape") && node.input.flat())) && node.output.rank == 3;
}

/// Behind layer `at`; `of`: of the tensors before it. A join is judged by the tensors that it reads, which may be rows where
/// the network that it ends begins with an image.
SKEIN_INLINE FeatureOrder order_behind(std::span<const plan::LayerNode> layers, std::size_t at,
                                       const std::vector<FeatureOrder>& of) {
  const plan::LayerNode& node = layers[at];
  if (is_linear(node) || is_recurrent(node)) return {};
  const FeatureOrder first = node.in < 0 ? FeatureOrder{} : of[static_cast<std::size_t>(node.in)];
  bool none = true, same = true;
  for (const int tensor : tensors_read(layers, at)) {
    const FeatureOrder& read = of[static_cast<std::size_t>(tensor)];
    if (read.lost) return read;
    none = none && read.none(), same = same && read.image == first.image;
  }
  if (flattens(node)) return order_of_image(node.input, node);
  if (none || (same && unflattens(node) && node.output == first.image)) return {};
  const bool stays = same && leaves_in_place(node) && node.output.flat() && node.output.count() == first.image.count();
  return stays ? first : FeatureOrder{.lost = &node};
}

SKEIN_INLINE FeatureOrder order_before(std::span<const plan::LayerNode> layers, std::size_t layer) {
  std::vector<FeatureOrder> of(layers.size() + 1);
  for (std::size_t i = 0; i < layer; ++i) of[static_cast<std::size_t>(layers[i].out)] = order_behind(layers, i, of);
  const plan::LayerNode& node = layers[layer];
  for (const int tensor : tensors_read(layers, layer))
    if (of[static_cast<std::size_t>(tensor)].lost) return of[static_cast<std::size_t>(tensor)];
  if (!node.input.flat()) return {};
  const FeatureOrder found = of[static_cast<std::size_t>(node.in)];
  const bool by_neighbors = is_kind(node, "GroupNorm") && !leaves_in_place(node);
  return by_neighbors && found.image.rank > 0 ? FeatureOrder{.lost = &node} : found;
}

SKEIN_INLINE FeatureOrder order_behind_of_image(std::span<const plan::LayerNode> layers, std::size_t layer) {
  std::vector<bool> carries(layers.size() + 1);  // the tensors that have these features
  carries[static_cast<std::size_t>(layers[layer].out)] = layers[layer].output.flat();
  FeatureOrder found;
  const plan::LayerNode* other = nullptr;  // that does not leave them in their places
  for (std::size_t i = layer + 1; i < layers.size(); ++i) {
    const plan::LayerNode& node = layers[i];
    const std::vector<int> read = tensors_read(layers, i);
    const auto is_carried = [&](int tensor) { return carries[static_cast<std::size_t>(tensor)]; };
    if (std::none_of(read.begin(), read.end(), is_carried)) continue;
    if (unflattens(node)) {
      const FeatureOrder order = order_of_image(node.output, node);
      if (!found.none() && !(order.image == found.image)) other = &node;
      if (found.none()) found = order;
    } else {
      carries[static_cast<std::size_t>(node.out)] = node.output.flat() && !is_kind(node, "Linear");
      if (!leaves_in_place(node) || read.size() > 1) other = &node;
    }
    if (!other && node.output.count() != layers[layer].output.count()) other = &node;  // a part of them
  }
  return !found.none() && other ? FeatureOrder{.lost = other} : found;
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
