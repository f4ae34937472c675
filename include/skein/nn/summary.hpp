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

#include "model.hpp"
#include "executor.hpp"

namespace skein::inline SKEIN_ABI {

namespace nn::detail {
inline std::string text_of(const Extents& e) {
  std::string t;
  for (int i = 0; i < e.rank; ++i) t += (i ? " x " : "") + std::to_string(e[i]);
  return t;
}
/// "Conv2d<6, Kernel<5> >" without the namespaces of the arguments.
inline std::string kind_text(std::string_view kind) {
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
inline std::string grouped(long n) {  // 61,706
  std::string t = std::to_string(n);
  for (int i = static_cast<int>(t.size()) - 3; i > 0; i -= 3) t.insert(static_cast<std::size_t>(i), ",");
  return t;
}
inline void pad(std::string& to, std::string_view text, std::size_t width, bool right = false) {
  if (right && text.size() < width) to.append(width - text.size(), ' ');
  to += text;
  if (!right && text.size() < width) to.append(width - text.size(), ' ');
  to += "  ";
}
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
inline constexpr int gradient_buckets = plan::bucket_count(Model::program.ops(), Model::sizes.stored + gradient_tail,
                                                           Bytes / static_cast<long>(sizeof(typename Model::Scalar)));

/// The table. Lines end with a newline.
template <class Model> std::string summary() {
  using F = nn::Frame<typename Model::Scalar, typename Model::device, typename Model::Activation>;
  struct Unit {
    int layer_count;
    std::string_view kernel;
  };
  std::vector<Unit> executed_layers;
  nn::Node<typename Model::fused, typename Model::input>::template executed_layers<F>(
      [&](int layer_count, std::string_view kernel) {
        executed_layers.push_back({layer_count, kernel});
      });

  std::string t;
  auto row = [&](std::string_view name, std::string_view kind, std::string_view output, std::string_view parameters,
                 std::string_view flops, std::string_view runs) {
    nn::detail::pad(t, name, 12);
    nn::detail::pad(t, kind, 44);
    nn::detail::pad(t, output, 14);
    nn::detail::pad(t, parameters, 12, true);
    nn::detail::pad(t, flops, 14, true);
    t += runs;
    while (!t.empty() && t.back() == ' ') t.pop_back();
    t += '\n';
  };
  row("name", "layer", "output", "parameters", "flops", "runs as");
  row("", "input", nn::detail::text_of(Model::input::extents), "", "", "");
  std::size_t unit = 0;
  int part = 0;
  for (const plan::LayerNode& o : Model::program.ops()) {
    const Unit u = unit < executed_layers.size() ? executed_layers[unit] : Unit{1, {}};
    std::string runs = part == 0 ? std::string(u.kernel) : "  with the one above";
    if (part == 0 && u.layer_count > 1)
      runs += (runs.empty() ? "fused, " : ", fused, ") + std::to_string(u.layer_count) + " layers";
    row(Model::program.name(o), std::string_view(nn::detail::kind_text(o.kind)).substr(0, 44), nn::detail::text_of(o.output),
        o.logical_parameters ? nn::detail::grouped(o.logical_parameters) : "", o.flops ? nn::detail::grouped(o.flops) : "", runs);
    if (++part >= u.layer_count) {
      part = 0;
      ++unit;
    }
  }
  constexpr nn::MemoryRequirements s = nn::analyze<typename Model::fused>(Model::input::extents);
  t += nn::detail::grouped(Model::parameter_count) + " parameters (" + nn::detail::grouped(s.stored) + " stored), " +
       nn::detail::grouped(Model::flops) + " flops forward a sample, " + nn::detail::grouped(saved_bytes_per_sample<Model>) +
       " bytes a sample kept for backward, " + std::to_string(gradient_buckets<Model>) + " gradient buckets of 128 KiB, runs " +
       (on_host<typename Model::device> && nn::prefers_depth_first(s)
            ? "depth-first in blocks of " +
                  std::to_string(nn::depth_first_block(s, sizeof(typename Model::Scalar), sizeof(typename Model::Activation))) +
                  " samples"
            : "layer by layer") +
       ", on " + std::string(Model::device::name) + nn::detail::precision_text<typename Model::precision>() + "\n";
  return t;
}
template <class Model> std::string summary(const Model&) { return summary<Model>(); }

/// The table, one line of what an executor has made, "memory for 128 samples on Cuda 0: ...", and what its device's libraries
/// have chosen: a line each, what they did not do first.
template <class Model, class Loss> std::string summary(Executor<Model, Loss>& executor) {
  const MemoryPlan m = executor.memory_plan();
  std::string t = summary<Model>() + "memory for " + std::to_string(executor.capacity()) + " samples on " +
                  std::string(Model::device::name) +
                  (on_host<typename Model::device> ? "" : " " + std::to_string(executor.model().where().ordinal)) + ": ";
  auto item = [&, first = true](const char* what, std::size_t bytes) mutable {
    if (bytes == 0) return;
    t += (std::exchange(first, false) ? "" : ", ") + std::string(what) + " " +
         nn::detail::grouped(static_cast<long>((bytes + 1023) / 1024)) + " KiB";
  };
  item("parameters", m.parameters);
  item("gradients", m.gradients);
  item("buffers", m.buffers);
  item("copies of weights", m.packed_weights);
  item("activations", m.activations);
  item("workspace of layers", m.workspace);
  item("workspace of libraries", m.libraries);
  return t + "\n" + executor.choices_text();
}

}  // namespace skein::inline SKEIN_ABI
