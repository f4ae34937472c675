// SPDX-License-Identifier: Apache-2.0
// What the loop of a fit knows of a training before it asks for anything.
#pragma once
#include <cstdint>

#include "../core/random.hpp"
#include "../data/loader.hpp"
#include "../parallel/policy.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

/// Samples of a step, of all its batches: over all ranks, and this rank's.
struct StepSamples {
  std::int64_t all = 0, own = 0;
};

/// What the loop knows of a training beforehand.
struct FitFacts {
  int rank = 0, ranks = 1, local_ranks = 1;  ///< of the policy; how many share a machine
  int part = 0, parts = 1;                   ///< of a batch: the ranks of a pipeline have one part together
  bool scores = true;                        ///< this rank has its part's outputs: of a pipeline, its last stage
  int virtual_shards = 0;                    ///< of a policy that has such
  bool local_sums = false;                   ///< a step's sums are of this rank alone
  bool labels = false;                       ///< the loss counts correct answers
  long labels_each = 1;                      ///< answers that a sample is asked for
  bool weight_counts = false;                ///< the loss ignores a label, and each other one adds 1 to the sums' weight
  bool host = true;                          ///< the sums of a step are known after it, without waiting for a device
  bool leaves_out = true;                    ///< a step can be left out before its update: not by a pipeline
  bool sees_all_sums = true;                 ///< before its update, all ranks know the sums of all
  bool in_step = false;                      ///< ranks make each step together, so that a small sum between steps is cheap
  bool asks = true;                          ///< small sums between steps take no simulated time
  bool serves = false;                       ///< the policy has ranks that make the updates
  parallel::SameWeights same_weights{};      ///< what the policy promises of the ranks' weights
  long metric_rows = 1;                      ///< rows of outputs of a sample, as metrics see them
  bool probabilities = false;                ///< the network ends with Sigmoid or Softmax
  int metric_width = 1, metric_values = 0;   ///< outputs of a row, values that they are compared with (0: a label)
  int threads = 1;                           ///< workers of this rank, where the options do not say
  Seed seed{};                               ///< the model's
  data::LoaderOptions loader{};              ///< how the device likes its batches
};

}  // namespace skein::inline SKEIN_ABI::train::detail
