// SPDX-License-Identifier: Apache-2.0
// A training that has nothing, for what asks a training's rank and exchanges.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <skein/train/saved_training.hpp>

namespace support {

/// One rank that asks which commits there are, and nothing else.
class NoTraining : public skein::train::SavedTraining {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  std::int64_t steps() override { return 0; }
  void set_steps(std::int64_t) override {}
  std::string optimizer_lines() override { return {}; }
  int state_arrays() override { return 0; }
  std::string loss_name() override { return {}; }
  std::span<const skein::plan::LayerNode> layers() override { return {}; }
  const char* placement() override { return ""; }
  void save_to(skein::train::SectionSink&, bool) override {}
  void saved() override {}
  void load_from(skein::train::SectionSource&) override {}
  void start_again() override {}
  void reduce(std::span<double>) override {}
  std::vector<std::string> texts_of_all(const std::string& own) override { return {own}; }
};

}  // namespace support
