// SPDX-License-Identifier: Apache-2.0
// The summary of a model as text: a row a layer with its output shape, parameters, flops, what backward keeps of it, the kernel
// that runs it and with which neighbours it is fused; then the sums. Everything in it is a constant of the type.
#pragma once
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "../core/text.hpp"
#include "model.hpp"
#include "executor.hpp"

namespace skein::inline SKEIN_ABI {

namespace nn::detail {
/// "Conv2d<6, Kernel<5> >" without the namespaces of the arguments.
std::string kind_text(std::string_view kind);
std::string grouped(long n);
void pad(std::string& to, std::string_view text, std::size_t width, bool right = false);
/// Nothing for a model of one scalar, as most are.
template <class P> std::string precision_text() {
  using skein::detail::scalar_name;
  if (!P::mixed && P::math == FloatMath::full) return {};
  return ", computes in " + std::string(scalar_name<typename P::compute>()) + " with weights and sums in " +
         std::string(scalar_name<typename P::master>());
}
}  // namespace nn::detail

/// Bytes a sample that backward needs kept, beside the batch itself.
template <class Model>
inline constexpr long saved_bytes_per_sample = nn::analyze<typename Model::fused>(Model::input::extents)
                                                   .kept_activations* static_cast<long>(sizeof(typename Model::Activation)) +
                                               nn::analyze<typename Model::fused>(Model::input::extents)
                                                   .saved_for_backward* static_cast<long>(sizeof(typename Model::Scalar)) +
                                               nn::analyze<typename Model::fused>(Model::input::extents).saved_bytes;

/// Gradient buckets of at least so many bytes.
template <class Model, long Bytes = 128 * 1024>
inline constexpr int gradient_buckets = plan::bucket_count(Model::program.layers(), Model::sizes.stored + gradient_tail,
                                                           Bytes / static_cast<long>(sizeof(typename Model::Scalar)));

namespace nn::detail {
/// Layers that run as one, and what runs them.
struct ExecutedLayer {
  int layer_count;
  std::string_view kernel;
};
/// A layer of the table: its name in the network, and what a plan knows of it.
struct SummaryRow {
  std::string name;
  const plan::LayerNode* node;
  bool frozen = false;  ///< within a frozen beginning
};
/// What the last line says; a depth_first_block of 0: layer by layer.
struct SummaryTotals {
  long parameters, stored, flops, saved_bytes, depth_first_block;
  long again_bytes, again_flops;  // what backward makes once more
  int buckets;
  std::string_view device;
  std::string precision;
};
std::string summary_text(const Extents& input, const std::vector<SummaryRow>& rows, const std::vector<ExecutedLayer>& executed,
                         const SummaryTotals& totals);
}  // namespace nn::detail

SKEIN_BEGIN_COLD

namespace nn::detail {
/// The table of a network whose parameters before the offset `first_trained` are frozen.
template <class Model> std::string summary_of(long first_trained) {
  using F = nn::Frame<typename Model::Scalar, typename Model::device, typename Model::Activation>;
  std::vector<ExecutedLayer> executed;
  nn::Node<typename Model::fused, typename Model::input>::template executed_layers<F>(
      [&](int layer_count, std::string_view kernel) {
        executed.push_back({layer_count, kernel});
      });
  std::vector<SummaryRow> rows;
  for (const plan::LayerNode& node : Model::program.layers())
    rows.push_back({std::string(std::string_view(Model::program.name(node))), &node,
                    first_trained > 0 && node.parameter + node.parameters <= first_trained});
  constexpr nn::MemoryRequirements s = nn::analyze<typename Model::fused>(Model::input::extents);
  constexpr bool depth_first = on_host<typename Model::device> && nn::prefers_depth_first(s);
  const long block =
      depth_first ? nn::depth_first_block(s, sizeof(typename Model::Scalar), sizeof(typename Model::Activation)) : 0;
  return summary_text(Model::input::extents, rows, executed,
                      {Model::parameter_count, s.stored, Model::flops, saved_bytes_per_sample<Model>, block,
                       s.again.activations * static_cast<long>(sizeof(typename Model::Activation)) +
                           s.again.saved * static_cast<long>(sizeof(typename Model::Scalar)) + s.again.bytes,
                       s.again.flops, gradient_buckets<Model>, Model::device::name, precision_text<typename Model::precision>()});
}
}  // namespace nn::detail

/// The table. Lines end with a newline.
template <class Model> std::string summary() { return nn::detail::summary_of<Model>(0); }
template <class Model> std::string summary(const Model&) { return summary<Model>(); }

/// The table, which names the layers of a frozen beginning, that backward leaves out; one line of what an executor has made,
/// "memory for 128 samples on Cuda 0: ...", with the state of the optimizer where one is given; and what the device's libraries
/// have chosen: a line each, what they did not do first. `optimizer`: a bound one.
template <class Model, class Loss, class Run, class... Optimizer>
requires(sizeof...(Optimizer) < 2) std::string summary(Executor<Model, Loss, Run>& executor, const Optimizer&... optimizer) {
  const MemoryPlan m = executor.memory_plan();
  std::string t = nn::detail::summary_of<Model>(executor.run_of(0).first_trained) +
                  text("memory for {} samples on {}{}: ", executor.capacity(), Model::device::name,
                       on_host<typename Model::device> ? "" : text(" {}", executor.model().where().ordinal));
  TextList items;
  const auto item = [&](const char* what, std::size_t bytes) {
    if (bytes > 0) items.add(text("{} {} KiB", what, nn::detail::grouped(static_cast<long>((bytes + 1023) / 1024))));
  };
  item("parameters", m.parameters);
  item("gradients", m.gradients);
  (item("state of the optimizer", optimizer.state_bytes()), ...);
  item("buffers", m.buffers);
  item("copies of weights", m.packed_weights);
  item("activations", m.activations);
  item("workspace of layers", m.workspace);
  item("workspace of libraries", m.libraries);
  return t + items.text() + "\n" + executor.choices_text();
}

SKEIN_END_COLD

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "summary.ipp"
#endif
