// SPDX-License-Identifier: Apache-2.0
// In which order the features of a tensor are, where they are the values of an image: here (height, width, channels), in PyTorch
// (channels, height, width). What weights_npz.hpp asks of the layers between a Flatten, or a Reshape, and an array.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../plan/program.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

bool is_kind(const plan::LayerNode& node, std::string_view name);
/// A normalisation, whose vectors have a value a feature.
bool is_normalization(const plan::LayerNode& node);
/// A Linear, also one on each position of a sequence.
bool is_linear(const plan::LayerNode& node);
bool is_recurrent(const plan::LayerNode& node);
/// A layer, or a join, whose outputs depend on nothing but the inputs in the same place and on all of a sample's. Groups of a
/// GroupNorm are of neighbours.
bool leaves_in_place(const plan::LayerNode& node);

/// What the features of a tensor are. `image`: its values in the order (height, width, channels), where that is not PyTorch's;
/// `lost`: some are, but this layer has reordered them or joined them with others. Neither: they have nothing to do with an
/// image.
struct FeatureOrder {
  Extents image{};
  const plan::LayerNode* lost = nullptr;
  const plan::LayerNode* made_by = nullptr;  ///< the layer between the image and the features
  bool none() const { return image.rank == 0 && !lost; }
};

/// The order of the features that a layer reads.
FeatureOrder order_before(std::span<const plan::LayerNode> layers, std::size_t layer);
/// The order of the features that a layer writes, known by a Reshape behind it, which makes an image of them.
FeatureOrder order_behind_of_image(std::span<const plan::LayerNode> layers, std::size_t layer);

}  // namespace skein::inline SKEIN_ABI::train::detail

#if !SKEIN_COMPILED
#include "feature_order.ipp"
#endif
