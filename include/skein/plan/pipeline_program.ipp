// SPDX-License-Identifier: Apache-2.0
// The bodies of pipeline_program.hpp.
#pragma once
#include "pipeline_program.hpp"

namespace skein::inline SKEIN_ABI::plan::detail {

SKEIN_INLINE int Numbers::take() {
  for (std::size_t i = 0; i < used_.size(); ++i)
    if (!used_[i]) return used_[i] = true, static_cast<int>(i);
  used_.push_back(true);
  return static_cast<int>(used_.size()) - 1;
}

SKEIN_INLINE std::vector<Step> steps_of(const Schedule& s, const PipelineProgramOptions& o) {
  std::vector<Step> order;
  if (o.last_rank == o.first_rank + 1) {
    order = s.order[static_cast<std::size_t>(o.first_rank)];
  } else {  // as they would run at the same time, one thread after the other
    std::vector<TimedStep> timed;
    (void)play(s, TaskLengths{}, [&](const TimedStep& t) {
      if (t.rank >= o.first_rank && t.rank < o.last_rank) timed.push_back(t);
    });
    std::stable_sort(timed.begin(), timed.end(), [](const TimedStep& a, const TimedStep& b) { return a.begin < b.begin; });
    for (const TimedStep& t : timed) order.push_back(t.step);
    if (s.synchronous) std::stable_partition(order.begin(), order.end(), [](const Step& x) { return x.task != Task::update; });
  }
  if (o.forward_only) std::erase_if(order, [](const Step& x) { return x.task != Task::forward; });
  return order;
}

SKEIN_INLINE PipelineProgramBuilder::PipelineProgramBuilder(const Schedule& s, const PipelineProgramOptions& o)
    : s_(s), o_(o), order_(steps_of(s, o)), wanted_(count(s.stages * s.micros), 0), slot_(count(s.stages * s.micros), -1),
      version_(count(s.stages), 0), last_use_(count(s.stages), std::vector<int>(count(s.micros + 1), -1)), saved_(last_use_),
      slots_(count(s.stages)), saves_(count(s.stages)) {
  p_.micros = s.micros;
  p_.synchronous = s.synchronous;
  if (!s.synchronous && !o.forward_only) find_versions();
  for (std::size_t i = 0; i < order_.size(); ++i)
    if (order_[i].task != Task::update) last_use_of(order_[i].stage, wanted(order_[i])) = static_cast<int>(i);
}

SKEIN_INLINE PipelineProgram PipelineProgramBuilder::build() {
  for (std::size_t i = 0; i < order_.size(); ++i) p_.lines.push_back(line(i));
  for (int stage = 0; stage < s_.stages; ++stage) {
    p_.slots.push_back(slots_[count(stage)].most());
    p_.versions.push_back(saves_[count(stage)].most());
  }
  return std::move(p_);
}

SKEIN_INLINE void check_waiting_gradients(const Schedule& s) {
  std::vector<int> waits(static_cast<std::size_t>(s.stages), -1);  // of each stage: the micro-batch
  for (const std::vector<Step>& order : s.order)
    for (const Step& x : order) {
      int& micro = waits[static_cast<std::size_t>(x.stage)];
      if (x.task == Task::forward) continue;
      if (micro >= 0 && micro != x.micro)
        throw ArgumentError(
            text("pipeline: {} of stage {}, micro-batch {}, comes before the update by micro-batch {}, whose gradient it would "
                 "overwrite: in a schedule that is not synchronous a stage updates by a micro-batch before it goes back through "
                 "the next",
                 name_of(x.task), x.stage, x.micro, micro));
      micro = x.task == Task::update ? -1 : x.micro;
    }
}

SKEIN_INLINE void check_mixed_backwards(const Schedule& s) {
  std::vector<int> whole(static_cast<std::size_t>(s.stages), -1), halved(whole);  // of each stage: a micro-batch
  for (const std::vector<Step>& order : s.order)
    for (const Step& x : order) {
      if (x.task == Task::backward) whole[static_cast<std::size_t>(x.stage)] = x.micro;
      if (x.task == Task::input_gradient) halved[static_cast<std::size_t>(x.stage)] = x.micro;
    }
  for (int stage = 0; stage < s.stages; ++stage)
    if (const int b = whole[static_cast<std::size_t>(stage)], h = halved[static_cast<std::size_t>(stage)]; b >= 0 && h >= 0)
      throw ArgumentError(
          text("pipeline: stage {} goes back through micro-batch {} by backward and through micro-batch {} by its halves, whose "
               "gradients would overwrite each other: in a synchronous schedule a stage has one or the other",
               stage, b, h));
}

SKEIN_INLINE void PipelineProgramBuilder::find_versions() {
  std::vector<int> updates(count(s_.stages), 0);
  for (const Step& x : s_.order[count(s_.rank_of(0))]) {
    if (x.stage == 0 && x.task == Task::update) ++updates[0];
    if (x.stage == 0 && x.task == Task::forward)
      for (int stage = 0; stage < s_.stages; ++stage) wanted({Task::forward, stage, x.micro}) = updates[0];
  }
  if (o_.vertical_sync) return;
  std::fill(updates.begin(), updates.end(), 0);
  for (const Step& x : order_) {
    if (x.task == Task::update) ++updates[count(x.stage)];
    if (x.task == Task::forward) wanted(x) = updates[count(x.stage)];
  }
}

SKEIN_INLINE PipelineLine PipelineProgramBuilder::line(std::size_t i) {
  PipelineLine line{.step = order_[i]};
  const auto [task, stage, micro] = line.step;
  if (task == Task::update) updated_ = true;
  else if (updated_ && s_.synchronous)
    throw ArgumentError(
        text("pipeline: a synchronous schedule's updates must be the last steps of each rank: here {} of stage {} "
             "follows one",
             name_of(task), stage));
  ask(line, i);
  if (task == Task::forward) forward(line);
  if (task == Task::backward || task == Task::input_gradient) backward(line);
  if (task == Task::input_gradient) p_.halves = true;
  if (task == Task::update) update(line, i);
  else use(line, i);
  if (task == Task::backward || task == Task::weight_gradient || o_.forward_only) slots_[count(stage)].give(line.slot);
  return line;
}

SKEIN_INLINE void PipelineProgramBuilder::ask(PipelineLine& line, std::size_t i) {
  if (comes(line.step) && slot(line.step.stage, line.step.micro) < 0) {
    line.asks = true;
    take(line.step.stage, line.step.micro);
  }
  if (line.step.task == Task::update || asked_ > static_cast<int>(i)) return;
  std::size_t ahead = i + 1;
  while (ahead < order_.size() && !comes(order_[ahead])) ++ahead;
  if (ahead == order_.size()) return;
  line.ahead = asked_ = static_cast<int>(ahead);
  take(order_[ahead].stage, order_[ahead].micro);
}

SKEIN_INLINE void PipelineProgramBuilder::forward(PipelineLine& line) {
  const int stage = line.step.stage, micro = line.step.micro, v = wanted(line.step), now = version_[count(stage)];
  if (slot(stage, micro) < 0) take(stage, micro);
  line.receives = comes(line.step);
  line.sends = stage + 1 < s_.stages && !own(stage + 1);
  if (stage + 1 < s_.stages && own(stage + 1)) line.to = take(stage + 1, micro);
  if (v > now)
    throw ArgumentError(
        text("pipeline: vertical_sync: micro-batch {} has seen {} updates in the first stage, stage {} has made {}: "
             "another order, or .vertical_sync = false",
             micro, v, stage, now));
  if (v < now) line.reads_version = saved(stage, v);
}

SKEIN_INLINE void PipelineProgramBuilder::backward(PipelineLine& line) {
  const int stage = line.step.stage;
  line.receives = stage + 1 < s_.stages && !own(stage + 1);
  line.sends = stage > 0 && !own(stage - 1);
  if (stage > 0 && own(stage - 1)) line.to = slot(stage - 1, line.step.micro);
}

SKEIN_INLINE void PipelineProgramBuilder::update(PipelineLine& line, std::size_t i) {
  int& v = version_[count(line.step.stage)];
  if (last_use_of(line.step.stage, v) > static_cast<int>(i))
    line.saves_version = saved(line.step.stage, v) = saves_[count(line.step.stage)].take();
  ++v;
}

SKEIN_INLINE void PipelineProgramBuilder::use(PipelineLine& line, std::size_t i) {
  const int stage = line.step.stage, v = wanted(line.step);
  line.slot = slot(stage, line.step.micro);
  if (int& k = saved(stage, v); k >= 0 && last_use_of(stage, v) == static_cast<int>(i))
    saves_[count(stage)].give(std::exchange(k, -1));
}

}  // namespace skein::inline SKEIN_ABI::plan::detail

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE PipelineProgram pipeline_program(const Schedule& s, const PipelineProgramOptions& o) {
  const ScheduleReport r = play(s, TaskLengths{}, [](const TimedStep&) {});
  if (r.fault == ScheduleFault::wrong_shape)
    throw ArgumentError(text("pipeline: {}; this one has {} orders for {} ranks, {} stages and {} micro-batches",
                             sentence_of(r.fault), s.order.size(), s.ranks, s.stages, s.micros));
  if (!r.sound())
    throw ArgumentError(text("pipeline: rank {}, {} of stage {}, micro-batch {}: {}", r.rank, name_of(r.at.task), r.at.stage,
                             r.at.micro, sentence_of(r.fault)));
  if (s.synchronous) detail::check_mixed_backwards(s);
  else detail::check_waiting_gradients(s);
  return detail::PipelineProgramBuilder(s, o).build();
}

}  // namespace skein::inline SKEIN_ABI::plan
