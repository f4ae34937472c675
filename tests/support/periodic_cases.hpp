// SPDX-License-Identifier: Apache-2.0
// What policies that synchronise now and then must do on any communicator of the host: written once, run over threads and over
// MPI.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <skein/optim/adam.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/average/post_local_sgd.hpp>
#include <skein/parallel/data/sync_every.hpp>

#include "data_parallel_cases.hpp"

namespace periodic_cases {

namespace sk = skein;
namespace cases = data_parallel_cases;
using namespace sk::parallel;
using Values = std::vector<double>;

/// 96 samples in batches of 24: 4 steps an epoch, the same number of samples on 1, 2, 3 and 4 ranks.
struct Even : cases::Points {
  Even() {
    x.resize(96 * 4), y.resize(96 * 3);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(3 * x[i / 3 * 4 + i % 3] + x[i / 3 * 4 + 3]);
  }
};

/// What one rank has after each step (at) and epoch, after the fit, and what the epochs were.
struct Trace {
  std::vector<Values> at, at_epoch;
  Values last, momentum, epochs;
  sk::History history;
};

template <class Optimizer = sk::optim::Sgd> struct Job {
  Optimizer optimizer{.lr = 0.1f};
  int epochs = 1;
  long batch = 24;
  bool steps = true;
  int accumulate = 1;
};

template <class Policy, class Optimizer = sk::optim::Sgd> Trace train(const Policy& policy, const Job<Optimizer>& job = {}) {
  Even points;
  auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  cases::Model model{sk::Seed{3}};
  sk::Trainer trainer{model, cases::nn::Mse{}, job.optimizer, policy};
  Trace t;
  struct Watch {
    Trace* trace;
    cases::Model* model;
    void on_step_end(const sk::train::StepRecord&, sk::train::FitControl&) {
      const auto p = std::as_const(*model).parameters();
      trace->at.emplace_back(p.begin(), p.end());
    }
    void on_epoch_end(const sk::train::EpochRecord&, sk::train::FitControl&) {
      const auto p = std::as_const(*model).parameters();
      trace->at_epoch.emplace_back(p.begin(), p.end());
    }
  };
  sk::FitOptions options{.epochs = job.epochs,
                         .batch = job.batch,
                         .validate = data,
                         .seed = sk::Seed{11},
                         .progress = false,
                         .threads = 1,
                         .step = {.accumulate = job.accumulate}};
  if (job.steps) options.callbacks.add(Watch{&t, &model});
  t.history = trainer.fit(data, options);
  const auto p = std::as_const(model).parameters();
  t.last.assign(p.begin(), p.end());
  if (trainer.train_step().optimizer().arrays() > 0) {
    const auto m = trainer.train_step().optimizer().array(0);
    t.momentum.assign(m.begin(), m.end());
  }
  for (const auto& e : t.history.epochs()) t.epochs.push_back(e.training.loss);
  return t;
}

inline bool near(const Values& a, const Values& b, double tolerance = 1e-12) {
  bool same = a.size() == b.size() && !a.empty();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = std::fabs(a[i] - b[i]) <= tolerance;
  return same;
}
/// Every rank has these bits.
template <class Comm> bool alike(Comm& world, const Values& mine) {
  Values first = mine;
  world.broadcast(sk::DeviceSpan<double>(first.data(), first.size()), 0);
  return world.all_reduce(first == mine ? 0 : 1) == 0;
}
template <class Comm> Values mean(Comm& world, Values mine) {
  world.all_reduce(sk::DeviceSpan<double>(mine.data(), mine.size()), sk::Mean{});
  return mine;
}

/// An average after every step of plain SGD is DataParallel, with batches that leave ranks more or fewer samples, or none; so is
/// an exchange of gradients in every step. With a momentum too, where its state is averaged and the ranks have equal parts.
template <class Comm> void is_data_parallel(Comm& world) {
  for (const long batch : {10L, 24L}) {  // of 96: the last has 6 samples
    const Job<> job{.epochs = 2, .batch = batch};
    const Trace all = train(DataParallel{world}, job);
    for (const Trace& t :
         {train(ModelAverage{world, Period<1>{}}, job), train(DataParallel{world, SyncEvery<1>{}}, job),
          train(DataParallel{world, SyncEveryEpochs<1>{}}, job), train(ModelAverage{world, {.fragments = 3}, Period<1>{}}, job),
          train(ModelAverage{world, {.warm_up = 1000}, Period<3>{}}, job)}) {
      RANK_CHECK(near(t.last, all.last));
      RANK_CHECK(near(t.epochs, all.epochs));
      RANK_CHECK(near({t.history.back().validation.loss}, {all.history.back().validation.loss}));
    }
  }
  const Job<> accumulated{
      .epochs = 2, .batch = 10, .accumulate = 3};  // a step of 30 samples, and one of 6: the samples of all its batches count
  RANK_CHECK(near(train(ModelAverage{world, Period<1>{}}, accumulated).last, train(DataParallel{world}, accumulated).last));
  if (24 % world.size() != 0) return;
  const Job<> momentum{.optimizer = {.lr = 0.1f, .momentum = 0.9}, .epochs = 2};
  const Trace all = train(DataParallel{world}, momentum),
              averaged = train(ModelAverage{world, {.state = true}, Period<1>{}}, momentum);
  RANK_CHECK(near(averaged.last, all.last));
  RANK_CHECK(near(averaged.momentum, all.momentum));
  RANK_CHECK(alike(world, averaged.momentum));
  const Trace later = train(ModelAverage{world, {.state = true}, Period<2>{}}, momentum),
              own = train(ModelAverage{world, Period<2>{}}, momentum);
  RANK_CHECK(near(later.last, all.last) == (world.size() == 1));
  RANK_CHECK(near(own.momentum, later.momentum) == (world.size() == 1));
  RANK_CHECK(alike(world, own.last));
}

/// What is frozen is the same on all ranks, and its mean would be rounded: of it outer optimizers would make steps.
template <class Comm> void keeps_frozen(Comm& world) {
  const cases::Model fresh{sk::Seed{3}};
  constexpr sk::plan::Entry bias = cases::Model::parameter("0.bias"), last = cases::Model::parameter("4.bias");
  const Values before(fresh.parameters().begin(), fresh.parameters().begin() + bias.offset + bias.stored);
  const Job<> job{.optimizer = {.lr = 0.1f, .groups = {sk::optim::frozen("*.bias"), sk::optim::frozen("0.weight")}}};
  for (const Trace& t : {train(DataParallel{world, SyncEvery<3>{}}, job), train(ModelAverage{world, Period<2>{}}, job),
                         train(ModelAverage{world, {.fragments = 3}, Period<1>{}, DiLoCo{sk::optim::Adam{.lr = 0.01f}}}, job)}) {
    RANK_CHECK(Values(t.last.begin(), t.last.begin() + bias.offset + bias.stored) == before);
    RANK_CHECK(t.last[static_cast<std::size_t>(last.offset)] == fresh.parameters()[last.offset]);  // behind a trained one
    RANK_CHECK(alike(world, t.last));
    RANK_CHECK(!near(t.last, Values(fresh.parameters().begin(), fresh.parameters().end())));
  }
}

/// Gradients every third step: replicas go their own ways in between, each by its own gradients, and are one at the end.
template <class Comm> void drifts(Comm& world) {
  const bool one = world.size() == 1;
  const Trace t = train(DataParallel{world, SyncEvery<3>{}}, Job<>{.epochs = 2});
  const Trace own = train(ModelAverage{world, {.at_end = false}, Period<1000>{}}, Job<>{.epochs = 2});
  RANK_CHECK(t.at.size() == 8);
  RANK_CHECK(near(t.at[1], own.at[1]));         // two steps by itself
  RANK_CHECK(near(t.at[2], own.at[2]) == one);  // the third with everybody's gradients
  RANK_CHECK(alike(world, t.at[1]) == one);
  RANK_CHECK(alike(world, t.at[2]) == one);  // whose steps were the same, but not where they began
  RANK_CHECK(near(t.last, mean(world, t.at[7])));
  RANK_CHECK(alike(world, t.last));
  Values step(t.last.size()), mine(t.last.size());
  for (std::size_t i = 0; i < step.size(); ++i) step[i] = t.at[2][i] - t.at[1][i], mine[i] = own.at[2][i] - own.at[1][i];
  if (24 % world.size() == 0) RANK_CHECK(near(step, mean(world, mine)));
  const Trace sums = train(DataParallel{world, {.reduce = Reduce::Sum}, SyncEvery<3>{}});
  RANK_CHECK(near(sums.at[1], own.at[1]));  // steps of its own are what they are
  RANK_CHECK(near(sums.at[2], t.at[2]) == one);
  // By epochs: the second is the first that exchanges.
  const Trace e = train(DataParallel{world, SyncEveryEpochs<2>{}}, Job<>{.epochs = 2});
  RANK_CHECK(near(e.at[3], own.at[3]));
  RANK_CHECK(near(e.at[4], own.at[4]) == one);
  RANK_CHECK(!near(e.last, t.last) || one);
}

/// The mean is by samples; unless all are to be alike.
template <class Comm> void weighs(Comm& world) {
  const auto shard = cases::Points().shard(world.rank());
  const double n = static_cast<double>(shard.size());
  const auto run = [&](const auto& policy, sk::data::Partition partition) {
    cases::Model model{sk::Seed{3}};
    sk::Trainer trainer{model, cases::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, policy};
    trainer.fit(shard, {.epochs = 1,
                        .progress = false,
                        .threads = 1,
                        .loader = {.batch_per_rank = 4, .shuffle = false, .partition = partition}});
    const auto p = std::as_const(model).parameters();
    return Values(p.begin(), p.end());
  };
  Values own = run(SingleProcess{}, sk::data::Partition::shared), weighted = own;
  for (double& v : weighted) v *= n;
  weighted = mean(world, weighted);
  const double samples = world.all_reduce(n, sk::Mean{});
  for (double& v : weighted) v /= samples;
  const bool one = world.size() == 1;
  const Values by_samples = run(ModelAverage{world, Period<1000>{}}, sk::data::Partition::local);
  const Values alike = run(ModelAverage{world, {.weighted = false}, Period<1000>{}}, sk::data::Partition::local);
  RANK_CHECK(near(by_samples, weighted));
  RANK_CHECK(near(alike, mean(world, own)));
  RANK_CHECK(near(by_samples, alike) == one);
}

/// Averages at their steps and epochs; warm-up; what another policy does first.
template <class Comm> void averages_on_time(Comm& world) {
  const bool one = world.size() == 1;
  const Job<> job{.epochs = 2};
  const Trace t = train(ModelAverage{world, Period<3>{}}, job);
  for (std::size_t s = 0; s < 8; ++s) RANK_CHECK(alike(world, t.at[s]) == (one || s % 3 == 2));
  RANK_CHECK(alike(world, t.last));
  RANK_CHECK(!alike(world, train(ModelAverage{world, {.at_end = false}, Period<3>{}}, job).last) || one);
  const Trace warm = train(ModelAverage{world, {.warm_up = 2}, Period<4>{}}, job);
  for (std::size_t s = 0; s < 8; ++s) RANK_CHECK(alike(world, warm.at[s]) == (one || s < 2 || s % 4 == 3));
  const Trace epochs = train(ModelAverage{world, Period<2, Every::epoch>{}}, job);
  for (std::size_t s = 0; s < 8; ++s)
    RANK_CHECK(alike(world, epochs.at[s]) == one);  // the average comes after the step's callback
  RANK_CHECK(near(epochs.last, mean(world, epochs.at[7]), one ? 1e-12 : 1e-2));
  RANK_CHECK(alike(world, {epochs.history.back().validation.loss}));
  // Post-local SGD: DataParallel, then averages.
  const Job<> momentum{.optimizer = {.lr = 0.1f, .momentum = 0.9}, .epochs = 2};
  const Trace all = train(DataParallel{world}, momentum),
              post = train(PostLocalSgd{world, SyncFirst<4>{}, Period<2>{}}, momentum);
  for (std::size_t s = 0; s < 8; ++s) {
    RANK_CHECK(near(post.at[s], all.at[s]) == (one || s < 4));
    RANK_CHECK(alike(world, post.at[s]) == (one || s < 4 || s % 2 == 1));
  }
  const Trace ends = train(PostLocalSgd{world, SyncFirst<4>{}, Period<1, Every::epoch>{}}, momentum);
  for (std::size_t s = 0; s < 8; ++s) {
    RANK_CHECK(near(ends.at[s], all.at[s]) == (one || s < 4));
    RANK_CHECK(alike(world, ends.at[s]) == (one || s < 4));
  }
  RANK_CHECK(alike(world, ends.at_epoch[1]));
  RANK_CHECK(near(ends.at_epoch[1], mean(world, ends.at[7]), one ? 1e-12 : 1e-2));
  // Gradients every third step and models every fourth, as the tutorial has it.
  const Trace both = train(Compose{DataParallel{world, SyncEvery<3>{}}, ModelAverage{world, Period<4>{}}}, job);
  const Trace gradients = train(DataParallel{world, SyncEvery<3>{}}, job);
  RANK_CHECK(near(both.at[2], gradients.at[2]));
  RANK_CHECK(near(both.at[3], gradients.at[3]) == one);
  for (std::size_t s = 0; s < 8; ++s) RANK_CHECK(alike(world, both.at[s]) == (one || s % 4 == 3));
}

/// A part of the parameters at a time, and parts that travel while training goes on.
template <class Comm> void streams(Comm& world) {
  if (world.size() == 1) return;
  const Job<> job{.epochs = 3};
  const Trace t = train(ModelAverage{world, {.fragments = 3}, Period<6>{}}, job);
  const std::size_t size = t.last.size(), lines = (size + 15) / 16;
  const auto part = [&](const Values& v, std::size_t f) {
    const auto at = [&](std::size_t i) { return v.begin() + static_cast<long>(std::min(size, 16 * (lines * i / 3))); };
    return Values(at(f), at(f + 1));
  };
  for (std::size_t s = 0; s < 12; ++s)
    for (std::size_t f = 0; f < 3; ++f) RANK_CHECK(alike(world, part(t.at[s], f)) == ((s + 1 + 6 - 2 * f) % 6 == 0));
  RANK_CHECK(alike(world, t.last));
  // Sent after step 4 as it was then, there after step 6.
  const Trace late = train(ModelAverage{world, {.delay = 2}, Period<4>{}}, job),
              own = train(ModelAverage{world, Period<1000>{}}, job);
  RANK_CHECK(near(late.at[4], own.at[4]));
  if (24 % world.size() == 0) RANK_CHECK(near(late.at[5], mean(world, own.at[3])));
  RANK_CHECK(alike(world, late.last));
  const Trace kept = train(ModelAverage{world, {.delay = 2, .keep = 0.25}, Period<4>{}}, job);
  Values expected = late.at[5];
  for (std::size_t i = 0; i < size; ++i) expected[i] = 0.75 * expected[i] + 0.25 * own.at[5][i];
  RANK_CHECK(near(kept.at[5], expected));
  // Sent after step 4; the fit ends at 5, where ranks keep what they keep, and are averaged once more.
  const Job<> five{.batch = 20};
  const Trace alone = train(ModelAverage{world, Period<1000>{}}, five),
              ended = train(ModelAverage{world, {.weighted = false, .delay = 2, .keep = 0.25}, Period<4>{}}, five);
  Values last = mean(world, alone.at[3]), own_last = mean(world, alone.at[4]);
  for (std::size_t i = 0; i < size; ++i) last[i] = 0.75 * last[i] + 0.25 * own_last[i];
  RANK_CHECK(ended.at.size() == 5);
  RANK_CHECK(near(ended.last, last));
}

/// The way to the mean as a gradient of another optimizer.
template <class Comm> void steps_outward(Comm& world) {
  const Job<> job{.epochs = 1};
  const Trace plain = train(ModelAverage{world, Period<2>{}}, job),
              none = train(ModelAverage{world, Period<2>{}, DiLoCo{sk::optim::Sgd{.lr = 1}}}, job);
  RANK_CHECK(near(none.last, plain.last));  // the rate of 1 leads to the mean
  const Trace outer = train(ModelAverage{world, Period<2>{}, DiLoCo{}}, job);
  cases::Model begin{sk::Seed{3}};
  Values anchor(std::as_const(begin).parameters().begin(), std::as_const(begin).parameters().end()), expected = anchor,
                                                                                                     momentum(anchor.size());
  for (std::size_t i = 0; i < anchor.size(); ++i) {
    momentum[i] = anchor[i] - plain.at[1][i];
    expected[i] -= double(0.7f) * (momentum[i] + 0.9 * momentum[i]);
  }
  RANK_CHECK(near(outer.at[1], expected));
  RANK_CHECK(alike(world, outer.last));
  RANK_CHECK(!near(outer.last, expected));
  // Sent after step 4, and taken at the end, after step 5, or in step 6: one step outward, and none of the momentum alone.
  for (const long batch : {20L, 16L}) {
    const Trace own = train(ModelAverage{world, {.at_end = false}, Period<1000>{}}, Job<>{.batch = batch}),
                late = train(ModelAverage{world, {.weighted = false, .delay = 2}, Period<4>{}, DiLoCo{}}, Job<>{.batch = batch});
    const Values sent = mean(world, own.at[3]);
    for (std::size_t i = 0; i < anchor.size(); ++i) expected[i] = anchor[i] - double(0.7f) * 1.9 * (anchor[i] - sent[i]);
    RANK_CHECK(near(late.last, expected));
  }
  const Trace streamed =
      train(ModelAverage{world, {.fragments = 2, .delay = 1, .keep = 0.5}, Period<4>{}, DiLoCo{}}, Job<>{.epochs = 4});
  RANK_CHECK(alike(world, streamed.last));
  RANK_CHECK(streamed.epochs.back() < streamed.epochs.front());
}

/// A period for each level; groups that do not nest are refused, with one message.
template <class Comm> void has_levels(Comm& world) {
  if (world.size() != 4) return;
  Comm node = world.split(world.rank() / 2);
  const Trace t = train(Compose{ModelAverage{node, Period<1>{}}, ModelAverage{world, Period<3>{}}}, Job<>{.epochs = 2});
  for (std::size_t s = 0; s < 8; ++s) {
    RANK_CHECK(alike(node, t.at[s]));
    RANK_CHECK(alike(world, t.at[s]) == (s % 3 == 2));
  }
  RANK_CHECK(alike(world, t.last));
  RANK_CHECK(near(train(Compose{ModelAverage{node, Period<2>{}}, ModelAverage{world, Period<1>{}}}).last,
                  train(DataParallel{world}).last));

  // Gradients of a node: what an epoch has to say is of all ranks, and the same on all.
  const Job<> still{.optimizer = {.lr = 1e-30f}, .epochs = 2};
  const Trace narrow = train(Compose{DataParallel{node}, ModelAverage{world, Period<2>{}}}, still);
  RANK_CHECK(alike(world, narrow.epochs));
  RANK_CHECK(near(narrow.epochs, train(DataParallel{world}, still).epochs));
  RANK_CHECK(near(train(Compose{DataParallel{node}, ModelAverage{world, Period<1>{}}}).last, train(DataParallel{world}).last));

  // An average of a node leaves the last one over all ranks to the policy of the gradients.
  RANK_CHECK(alike(
      world, train(Compose{DataParallel{world, SyncEvery<5>{}}, ModelAverage{node, Period<2>{}}}, Job<>{.epochs = 2}).last));
  // So does that of a node behind one over all ranks.
  const Compose drifts{DataParallel{world, SyncEvery<5>{}}, ModelAverage{world, Period<5>{}},
                       ModelAverage{node, Period<3>{}, DiLoCo{}}};
  RANK_CHECK(alike(world, train(drifts, Job<>{.epochs = 2}).last));
  Comm across = world.split(world.rank() == 0 || world.rank() == 3 ? 0 : 1), columns = world.split(world.rank() % 2);
  const auto refusal = [&](const auto& policy) {
    std::string message;
    try {
      cases::Model model{sk::Seed{3}};
      sk::Trainer trainer{model, cases::nn::Mse{}, sk::optim::Sgd{}, policy};
    } catch (const sk::CommError& e) { message = e.what(); }
    for (const std::string& m : world.all_gather(message)) RANK_CHECK(m == message);
    return message;
  };
  const std::string text =
      refusal(Compose{ModelAverage{node, Period<2>{}}, ModelAverage{across, Period<2>{}}, ModelAverage{world, Period<1>{}}});
  RANK_CHECK(text.find("Compose: groups overlap wrongly: ranks 0 and 1 share a group of 2") != std::string::npos);
  RANK_CHECK(refusal(Compose{ModelAverage{node, Period<2>{}}, ModelAverage{columns, Period<1>{}}})
                 .find("of the widest communicator's 2 ranks") != std::string::npos);
  RANK_CHECK(refusal(Compose{ModelAverage{node, Period<2>{}}, ModelAverage{world, Period<1>{}}}).empty());
}

/// Ranks that disagree on the options do not start.
template <class Comm> void refuses_other_options(Comm& world) {
  if (world.size() == 1) return;
  const auto refuse = [&](auto policy, const std::string& option) {
    std::string message;
    try {
      cases::Model model{sk::Seed{3}};
      sk::Trainer trainer{model, cases::nn::Mse{}, sk::optim::Sgd{}, policy};
    } catch (const sk::CommError& e) { message = e.what(); }
    RANK_CHECK(message.find("the models of ModelAverage differ between ranks: " + option + " is ") != std::string::npos);
    for (const std::string& m : world.all_gather(message)) RANK_CHECK(m == message);
  };
  const bool first = world.rank() == 0;
  refuse(ModelAverage{world, {.state = first}, Period<4>{}}, "`.state` of ModelAverage");
  refuse(ModelAverage{world, {.delay = 1, .keep = first ? 0.5 : 0.25}, Period<4>{}}, "`.keep` of ModelAverage");
  refuse(ModelAverage{world, {}, Period<4>{}, sk::parallel::DiLoCo{sk::optim::Sgd{.lr = first ? 0.5f : 0.25f}}}, "`.lr` of Sgd");
}

/// All of them learn what DataParallel learns.
template <class Comm> void learns(Comm& world) {
  const Job<sk::optim::Sgd> job{.optimizer = {.lr = 0.2f}, .epochs = 60, .batch = 24, .steps = false};
  const double first = train(DataParallel{world}, Job<>{.steps = false}).epochs.front();
  const auto reaches = [&](const auto& policy) { return train(policy, job).history.back().validation.loss < 0.2 * first; };
  RANK_CHECK(reaches(DataParallel{world}));
  RANK_CHECK(reaches(DataParallel{world, SyncEvery<3>{}}));
  RANK_CHECK(reaches(ModelAverage{world, Period<4>{}}));
  RANK_CHECK(reaches(ModelAverage{world, Period<4>{}, DiLoCo{}}));
  RANK_CHECK(reaches(PostLocalSgd{world, SyncFirst<4>{}, Period<2>{}}));
  RANK_CHECK(reaches(Compose{DataParallel{world, SyncEvery<3>{}}, ModelAverage{world, Period<4>{}}}));
}

}  // namespace periodic_cases
