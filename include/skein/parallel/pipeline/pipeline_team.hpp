// SPDX-License-Identifier: Apache-2.0
// Where a process stands in a pipeline: which ranks of the schedule, which replica.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../core/error.hpp"
#include "../../device/batch_view.hpp"
#include "pipeline_link.hpp"
#include "pipeline_options.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The communicators of a pipeline and this process's place. All ranks of the world make theirs at the same time.
class PipelineTeam {
 public:
  PipelineTeam(std::shared_ptr<PipelineLink> everyone, const PipelineOptions& o, int stage_count)
      : options(o), stages(stage_count), world(std::move(everyone)) {
    const int size = world->size();
    skein::detail::demand_value("Pipeline", ".schedule", o.schedule, PipelineSchedule::pipedream,
                                "unpipelined, gpipe, one_f_one_b, interleaved, zero_bubble or pipedream");
    if (o.micro_batches < 1 || o.micro_batch < 0)
      throw ArgumentError("Pipeline: .micro_batches is at least 1, .micro_batch (samples of one) not negative");
    if (o.replicas < 1 || size % o.replicas != 0)
      throw ArgumentError(text("Pipeline: {} ranks cannot be divided into .replicas = {} pipelines", size, o.replicas));
    if (!o.lengths.stages.empty() && static_cast<int>(o.lengths.stages.size()) != stage_count)
      throw ArgumentError(text("Pipeline: .lengths has {} stages of {}", o.lengths.stages.size(), stage_count));
    processes = size / o.replicas;
    ranks = processes > 1 ? processes : o.devices > 0 ? o.devices : stages;
    if (stages % ranks != 0 || (ranks != stages && o.schedule != PipelineSchedule::interleaved && !o.table))
      throw ArgumentError(text("Pipeline: {} stages over {} ranks: give as many ranks as stages (times .replicas){}", stages,
                               ranks, (stages % ranks == 0 ? ", or PipelineSchedule::interleaved" : "")));
    replica = world->rank() / processes;
    process = world->rank() % processes;
    first_rank = processes > 1 ? process : 0;
    last_rank = processes > 1 ? process + 1 : ranks;
    if (o.replicas > 1) {
      pipeline_link = world->split(replica, process);
      replica_link = world->split(process, replica);
    } else {
      pipeline_link = world;
    }
  }
  bool holds(int stage) const { return stage % ranks >= first_rank && stage % ranks < last_rank; }
  /// Samples of a micro-batch, for a batch of so many over all pipelines.
  long micro_size(long global_count) const {
    if (options.micro_batch > 0) return options.micro_batch;
    const long mine = (global_count + options.replicas - 1) / options.replicas;
    return std::max(1L, (mine + options.micro_batches - 1) / options.micro_batches);
  }
  /// What the stages of this process read of a batch.
  template <class Scalar> BatchView<Scalar> own_part(BatchView<Scalar> batch) const {
    if (!holds(0)) batch.x = nullptr;
    if (!holds(stages - 1)) batch.labels = nullptr, batch.targets = nullptr;
    return batch;
  }
  /// The process of this pipeline that has a stage.
  int process_of(int stage) const { return processes > 1 ? stage % ranks : 0; }
  /// The processes of this pipeline need not compare their tables for so many micro-batches (any more).
  bool is_compared(int micros) const {
    for (const int n : compared_)
      if (n == micros) return true;
    return !options.table || processes == 1;
  }
  /// The table of a batch with so many micro-batches. `together`: all processes of the pipeline ask for it, and one of .table is
  /// compared, once: with different ones they would wait for each other, or update at different times.
  plan::Schedule schedule(int micros, bool together) {
    plan::Schedule s = pipeline_schedule(options, ranks, stages, micros);
    if (!together || is_compared(micros)) return s;
    NamedValues values;
    values.add("the number of micro-batches of a batch", micros).of(".table");
    values.add(".synchronous", s.synchronous).add(".ranks", s.ranks).add(".stages", s.stages).add(".micros", s.micros);
    for (std::size_t r = 0; r < s.order.size(); ++r) {
      std::vector<int> steps;
      for (const plan::Step& x : s.order[r])
        for (const int n : {static_cast<int>(x.task), x.stage, x.micro}) steps.push_back(n);
      values.add_hash(text("the order of rank {}", r), steps.data(), steps.size() * sizeof(int));
    }
    pipeline_link->assert_same("the tables of the pipeline", values);
    compared_.push_back(micros);
    return s;
  }
  /// All pipelines, at their first step: by tables of different kinds one would sum gradients once a batch and another once a
  /// micro-batch, and take the sums of the one for those of the other.
  void compare_pipelines(bool synchronous) {
    if (!replica_link || !options.table || pipelines_compared_) return;
    NamedValues values;
    values.of(".table").add(".synchronous", synchronous);
    world->assert_same("the tables of the pipelines", values);
    pipelines_compared_ = true;
  }

  PipelineOptions options;
  int stages;
  /// All ranks; those of this pipeline; those that have the same stages in all pipelines, where there are several.
  std::shared_ptr<PipelineLink> world, pipeline_link, replica_link{};
  int processes = 1, process = 0, ranks = 1, replica = 0;  // ranks: of the schedule
  int first_rank = 0, last_rank = 1;

 private:
  std::vector<int> compared_;  // numbers of micro-batches
  bool pipelines_compared_ = false;
};

}  // namespace skein::inline SKEIN_ABI::parallel
