// SPDX-License-Identifier: Apache-2.0
// The cluster that an experiment simulates, as flags: alpha and beta within a node and between nodes, and jitter.
#pragma once
#include <skein/core/flags.hpp>
#include <skein/plan/alpha_beta.hpp>

namespace experiments {

/// Options of an experiment begin with it: struct Options : ClusterFlags, whose flags() calls this one's.
struct ClusterFlags {
  int node = 8;
  double near_us = 2, near_gb = 20, far_us = 10, far_gb = 10, jitter = 0.05;

  skein::plan::Network network() const { return {{1e-6 * near_us, 1e-9 / near_gb}, {1e-6 * far_us, 1e-9 / far_gb}, node, 0}; }

  void flags(skein::Flags& f) {
    f("node", node, "ranks of a node").within(1, 65536);
    f("near-us", near_us, "alpha within a node, microseconds").within(1e-9, 1e9);
    f("near-gb", near_gb, "GB/s within a node").within(1e-9, 1e9);
    f("far-us", far_us, "alpha between nodes, microseconds").within(1e-9, 1e9);
    f("far-gb", far_gb, "GB/s between nodes").within(1e-9, 1e9);
    f("jitter", jitter, "deviation of the time to compute and of messages").within(0, 2);
  }
};

}  // namespace experiments
