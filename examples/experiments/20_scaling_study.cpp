// SPDX-License-Identifier: Apache-2.0
// The scaling study that a supercomputing lab asks for: ResNet50V2 and ResNet152V2 on CIFAR-10 images made larger, the same
// batch on each rank (--batch), or a batch that the ranks share (--global-batch, as the lab has it), plain SGD at 0.01 times the
// ranks, the first epoch discarded, the training accuracy after the last. Each start measures its number of ranks and
// adds the epoch's time, and its parts, to the file of --record; then it draws what the file has, and, where the run of one rank
// is there, 8, 16, 32, ... ranks that it does not have: simulated from that run's parts, with an all-reduce that overlaps with
// backward, by the cheapest algorithm of the given links.
//     for n in 1 2 4; do mpirun -n $n 20_scaling_study --record study.csv --svg study; done
//     for n in 1 2 4; do  # as the lab has it
//         mpirun -n $n 20_scaling_study --samples 1024 --global-batch 256 --epochs 5 --record study.csv --svg study; done
// The gate compiles images of 32 x 32; 128 x 128 as in the lab are there where tests are not built (-DSKEIN_TESTS=OFF).
// ctest: --samples 8 --batch 4 --epochs 2 --side 32 --ranks 8 --record study.csv --svg study
// ctest expects: ResNet152V2 +8 +simulated
// ctest: --samples 4 --batch 4 --epochs 2 --side 32 --depths 50 --ranks 4
// ctest expects: nothing is simulated: that begins with 8 ranks, and --ranks 4 ends it before
// ctest on 2 ranks: --samples 8 --batch 2 --epochs 2 --side 32 --depths 50 --record study.csv
// ctest expects: accuracy.*ResNet50V2 +2 +measured.*the file of --record as .ResNet50V2 on [a-zA-Z0-9 -]+ 32x32 .* rate of 0.01
// ctest: --samples 8 --global-batch 8 --epochs 2 --side 32 --depths 50 --record study.csv
// ctest expects: accuracy.*ResNet50V2 +8 +simulated
// ctest: --samples 12 --global-batch 12 --epochs 2 --side 32 --depths 50
// ctest expects: 12 images of 32 x 32, 12 of all ranks in a batch.*not simulated: 8 ranks, which cannot share --global-batch 12
// ctest long: --samples 8 --batch 4 --epochs 2 --side 128 --depths 50
// ctest expects: 8 images of 128 x 128
// ctest: --depths 50,51
// ctest expects: --depths 51: they are 50 and 152
// ctest: --samples 32 --depths 50 --ranks 65536
// ctest expects: --ranks 65536 is more than the 32 samples of an epoch: give a smaller one, or more --samples
// ctest: --samples 64 --depths 50 --global-batch 32 --ranks 64
// ctest expects: --ranks 64 is more than the 32 samples of --global-batch: give a smaller one, or a larger --global-batch
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <skein/data/resize.hpp>
#include <skein/mpi.hpp>
#include <skein/plan/step_cost.hpp>
#include <skein/skein.hpp>

#include "support/cifar_or_digits.hpp"
#include "support/cluster_flags.hpp"
#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
#include "support/recorded_runs.hpp"
#include "support/table.hpp"
namespace sk = skein;
namespace ex = experiments;
namespace plan = skein::plan;

namespace {

#if SKEIN_ALL_DEPTHS
constexpr int usual_side = 128;
#else
constexpr int usual_side = 32;
#endif

struct Options : ex::ClusterFlags {
  std::vector<int> depths{50, 152};
  int side = usual_side, epochs = 3, ranks = 0, threads = 1;
  long batch = 16, global_batch = 0, samples = 128, bucket_mb = 8;
  double lr = 0.01;
  std::string data, record, svg;

  void flags(sk::Flags& f) {
    f.about("How ResNet50V2 and ResNet152V2 scale: measured, and simulated for more ranks");
    f("depths", depths, "of the networks: 50, 152").within(50, 152);
    f("side", side, "of the images: 32 or 128").within(32, 128);
    f("epochs", epochs, "how many, of which the first does not count").within(2, 1000);
    f("batch", batch, "samples of a rank in a batch").within(1, 1'000'000);
    f("global-batch", global_batch, "samples of all ranks in a batch, which they share; 0: those of each")
        .within(0, 1'000'000'000);
    f("samples", samples, "of an epoch; 0: all").within(0, 1'000'000);
    f("lr", lr, "rate of one rank").within(1e-12, 100);
    f("threads", threads, "workers of a rank, of any number of ranks; 0: its cores").within(0, 1024);
    f("ranks", ranks, "simulates 8, 16, 32, ... up to so many; 0: 512, or as many as there are samples").within(0, 65536);
    f("bucket-mb", bucket_mb, "MiB of a bucket of gradients, simulated").within(1, 1024);
    ClusterFlags::flags(f);
    f("data", data, "folder of CIFAR-10");
    f("record", record, "adds the times to this file, and reads those of other ranks there");
    f("svg", svg, "draws SVGs whose names begin so");
  }
};

/// An epoch on so many ranks.
struct Epoch {
  int ranks = 1;
  bool simulated = false;
  double seconds = 0;
  double accuracy = NAN;                                            // of the training in its last epoch
  std::vector<double> parts = std::vector<double>(sk::step_parts);  // seconds of a StepPart

  double& operator[](sk::StepPart p) { return parts[static_cast<std::size_t>(p)]; }
  double operator[](sk::StepPart p) const { return parts[static_cast<std::size_t>(p)]; }
};
struct Study {
  std::string network;
  std::vector<Epoch> epochs{};  // by their ranks
  std::string run_of_one{};     // what a run of one rank is recorded as that this is compared with
  std::string other{};          // another comparison that the file of --record allows
};

/// What is trained with.
struct Data {
  std::string name;  // of its source
  sk::data::InMemory<std::uint8_t> images;
};

/// The images in another size: once, when the program starts.
sk::data::InMemory<std::uint8_t> resized(const sk::data::InMemory<std::uint8_t>& images, int side) {
  std::vector<std::uint8_t> all;
  std::vector<std::int32_t> labels;
  std::vector<float> image(32 * 32 * 3);
  for (long i = 0; i < images.size(); ++i) {
    image.assign(images.stored(i), images.stored(i) + image.size());
    for (const float v : sk::data::resize(image, {32, 32}, {side, side}, 3)) all.push_back(static_cast<std::uint8_t>(v + 0.5f));
    labels.push_back(images.label(i));
  }
  return {{3, {side, side, 3}}, std::move(all), std::move(labels), 10};
}

// [quote timed]
/// The mean epoch of a training behind its first, as rank 0 sees it, and the accuracy of its last.
template <class Model> Epoch measure(sk::MpiComm& world, const Options& o, const sk::data::InMemory<std::uint8_t>& images) {
  Model model{sk::Seed{1}};
  sk::StepClock clock;
  sk::Trainer trainer{model, sk::nn::Timed{sk::nn::CrossEntropy{}, clock},
                      sk::optim::Sgd{.lr = static_cast<float>(o.lr * world.size())}, sk::parallel::DataParallel{world}};
  const auto discard_first = [&](sk::train::EpochRecord& epoch) {
    if (epoch.epoch == 1) clock.restart();
  };
  const sk::History history = trainer.fit(
      map(images, sk::data::cifar10_channels),
      {.epochs = o.epochs, .callbacks = {discard_first}, .threads = o.threads, .loader = {.batch_per_rank = o.batch}});
  Epoch mean{.ranks = world.size(), .accuracy = history.back().training.accuracy};
  for (const auto& epoch : history)
    if (epoch.epoch > 1) mean.seconds += epoch.seconds / (o.epochs - 1);
  for (std::size_t p = 0; p < sk::step_parts; ++p) mean.parts[p] = clock.seconds(sk::StepPart(p)) / (o.epochs - 1);
  return mean;
}
// [end]

/// An epoch of more ranks, from the parts of one rank's. Where they share a batch, each step has a share of all but the update,
/// which is of all weights on each rank; that small batches take longer a sample is not simulated.
template <class Model> Epoch simulate(const Options& o, const Epoch& one, double samples, int ranks) {
  const double steps_of_one = samples / static_cast<double>(o.global_batch > 0 ? o.global_batch : o.batch);
  const bool shared = o.global_batch > 0;
  const double steps = shared ? steps_of_one : steps_of_one / ranks;
  const auto share = [&](sk::StepPart p) { return shared && p != sk::StepPart::update ? 1.0 / ranks : 1.0; };
  const auto seconds = [&](sk::StepPart p) { return share(p) * one[p] / steps_of_one; };  // of a step
  const plan::ComputeTimes times{seconds(sk::StepPart::forward) + seconds(sk::StepPart::loss), seconds(sk::StepPart::backward),
                                 seconds(sk::StepPart::update)};
  const double alone = times.step() + seconds(sk::StepPart::load);
  const plan::StepCost cost = plan::step_cost({.layers = Model::program.layers(),
                                               .scalars = static_cast<long>(Model::sizes.stored) + sk::gradient_tail,
                                               .compute = times,
                                               .bucket_bytes = o.bucket_mb << 20},
                                              o.network(), ranks);
  const double step =
      plan::seconds_of({.ranks = ranks, .steps = 100, .compute = alone, .exposed = cost.exposed, .jitter = o.jitter}) / 100;
  Epoch e{.ranks = ranks, .simulated = true, .seconds = steps * step};
  for (std::size_t p = 0; p < sk::step_parts; ++p) e.parts[p] = steps * seconds(sk::StepPart(p));
  e[sk::StepPart::synchronization] = steps * (step - alone);
  return e;
}

constexpr int least_simulated = 8;  // then twice as many, ...
/// An epoch cannot be shared by more ranks than it has samples, nor a batch.
int most_ranks(const Options& o, std::int64_t samples) {
  const std::int64_t most = o.global_batch > 0 ? std::min<std::int64_t>(samples, o.global_batch) : samples;
  return static_cast<int>(std::min<std::int64_t>(o.ranks > 0 ? o.ranks : 512, most));
}

/// Have so many ranks equal shares of --global-batch? Where it is 0 each has a batch of its own.
bool shares_batch(const Options& o, int ranks) { return o.global_batch % ranks == 0; }

/// What a run is recorded as: all that changes its time, or its accuracy.
std::string settings_of(const std::string& network, const Options& o, const std::string& data, std::int64_t samples) {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%g", o.lr);
  return network + " on " + data + " " + std::to_string(o.side) + "x" + std::to_string(o.side) + " " + std::to_string(o.epochs) +
         " epochs of " + std::to_string(samples) + " by " + std::to_string(o.batch) + " on " + std::to_string(o.threads) +
         " threads at a rate of " + rate;
}

/// Records what was measured; with it what the file has at the same settings.
void record(const Options& o, const Epoch& measured, const Data& data, Study& all) {
  const auto name = [&](const Options& at) { return settings_of(all.network, at, data.name, data.images.size()); };
  const ex::RunSettings settings = ex::settings_by_ranks(o, name);
  std::vector<double> more = measured.parts;
  more.push_back(measured.accuracy);
  if (!o.record.empty()) {
    std::printf("%s\n", ex::record_run(o.record, settings, measured.ranks, measured.seconds, more).c_str());
    all.other = ex::other_comparison(o.record, o, measured.ranks, name);
  }
  all.run_of_one = settings.of(1);
  for (const ex::RecordedRun& run : ex::runs_with({measured.ranks, measured.seconds, more}, o.record, settings)) {
    Epoch e{.ranks = run.ranks, .seconds = run.seconds, .accuracy = run.more.back(), .parts = run.more};
    e.parts.pop_back();
    all.epochs.push_back(e);
  }
}

/// Measures these ranks; what the file has, and what is simulated, on rank 0.
template <int Depth, int Side> Study study(sk::MpiComm& world, const Options& o, const Data& data) {
  using Model = sk::Model<sk::models::ResNetV2<Depth, 10>, sk::Shape<Side, Side, 3>>;
  Study all{"ResNet" + std::to_string(Depth) + "V2"};
  if (world.rank() == 0) std::printf("-- %s, %ld parameters\n", all.network.c_str(), static_cast<long>(Model::parameter_count));
  const Epoch measured = measure<Model>(world, o, data.images);
  if (world.rank() != 0) return all;
  record(o, measured, data, all);
  if (all.epochs.front().ranks > 1) return all;
  const Epoch one = all.epochs.front();
  const auto has = [&](int ranks) {
    return std::any_of(all.epochs.begin(), all.epochs.end(), [&](const Epoch& e) { return e.ranks == ranks; });
  };
  const std::int64_t samples = data.images.size();
  for (int n = least_simulated; n <= most_ranks(o, samples); n *= 2)
    if (!has(n) && shares_batch(o, n)) all.epochs.push_back(simulate<Model>(o, one, static_cast<double>(samples), n));
  std::sort(all.epochs.begin(), all.epochs.end(), [](const Epoch& a, const Epoch& b) { return a.ranks < b.ranks; });
  return all;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}
void print(const std::vector<Study>& studies, std::int64_t samples) {
  ex::Table table{{"network", "ranks", "", "s an epoch", "images/s", "speed-up", "efficiency", "accuracy", "load", "forward",
                   "loss", "backward", "synchronization", "optimizer"}};
  for (const Study& s : studies)
    for (const Epoch& e : s.epochs) {
      const Epoch& one = s.epochs.front();
      const double speed_up = one.ranks == 1 ? one.seconds / e.seconds : NAN;
      std::vector<std::string> cells{s.network,
                                     std::to_string(e.ranks),
                                     e.simulated ? "simulated" : "measured",
                                     ex::cell(e.seconds),
                                     ex::cell(static_cast<double>(samples) / e.seconds),
                                     ex::cell(speed_up),
                                     ex::cell(speed_up / e.ranks),
                                     ex::cell(e.accuracy)};
      for (const double part : e.parts) cells.push_back(percent(part / e.seconds));
      table.row(cells);
    }
  table.print();
  std::printf("the lab's GPUs, 1, 2, 4: 45, 24, 12 s an epoch; speed-up 1, 1.88, 3.75; accuracy .507, .505, .501\n");
}

/// Those of 8, 16, 32, ... ranks that cannot share --global-batch: "8, 16".
std::string without_equal_shares(const Options& o, std::int64_t samples) {
  sk::TextList list;
  for (int n = least_simulated; n <= most_ranks(o, samples); n *= 2)
    if (!shares_batch(o, n)) list.add(n);
  return list.text();
}

/// Are there simulated epochs of less than a step? What their seconds mean then. Are some not there, or none: why.
void say_simulated(const std::vector<Study>& studies, const Options& o, std::int64_t samples) {
  const auto any_beyond = [&](std::int64_t ranks) {
    for (const Study& s : studies)
      for (const Epoch& e : s.epochs)
        if (e.simulated && e.ranks > ranks) return true;
    return false;
  };
  if (o.global_batch == 0 && any_beyond(samples / o.batch))
    std::printf("on more than %ld ranks an epoch is less than a step of %ld a rank: its seconds are that share of the step's\n",
                static_cast<long>(samples / o.batch), o.batch);
  const Study& first = studies.front();
  const std::string unequal = first.epochs.front().ranks > 1 ? "" : without_equal_shares(o, samples);
  if (!unequal.empty())
    std::printf("not simulated: %s ranks, which cannot share --global-batch %ld equally: give a multiple of them\n",
                unequal.c_str(), o.global_batch);
  if (any_beyond(0)) return;
  if (first.epochs.front().ranks > 1)
    std::printf("nothing is simulated: that needs a run of one rank in the file of --record as \"%s\"%s\n",
                first.run_of_one.c_str(), first.other.empty() ? "" : ("; " + first.other).c_str());
  else if (most_ranks(o, samples) >= least_simulated && unequal.empty())
    std::printf("nothing is simulated: the file of --record has all numbers of ranks from %d on\n", least_simulated);
  else if (most_ranks(o, samples) < least_simulated)
    std::printf("nothing is simulated: that begins with %d ranks, and --%s %d ends it before\n", least_simulated,
                most_ranks(o, samples) == o.ranks          ? "ranks"
                : most_ranks(o, samples) == o.global_batch ? "global-batch"
                                                           : "samples",
                most_ranks(o, samples));
}

/// value(study, epoch) of both networks on one plot: measured, and simulated. `data`: what was trained with, for the title.
template <class Value> void draw(const std::string& name, const char* label, const std::vector<Study>& studies,
                                 const std::string& data, bool log_y, const Value& value) {
  sk::draw::Plot plot{
      .title = label + (", " + data), .x_label = "ranks", .y_label = label, .log_x = true, .log_y = log_y, .from_zero = !log_y};
  for (const Study& s : studies)
    for (const bool simulated : {false, true}) {
      auto& series = plot.series.emplace_back();
      series.name = s.network + (simulated ? ", simulated" : "");
      series.dashed = simulated;
      for (const Epoch& e : s.epochs)
        if (e.simulated == simulated) series.x.push_back(e.ranks), series.y.push_back(value(s, e));
      if (series.x.empty()) plot.series.pop_back();
    }
  plot.write(name);
}
void draw_parts(const std::string& name, const Study& study, const std::string& data) {
  sk::TextList measured;
  for (const Epoch& e : study.epochs)
    if (!e.simulated) measured.add(e.ranks);
  sk::draw::Plot plot{.title = study.network + ", " + data + ": where an epoch's time goes",
                      .x_label = "ranks (measured: " + measured.text() + ")",
                      .y_label = "share of the time",
                      .log_x = true,
                      .from_zero = true};
  for (std::size_t p = 0; p < sk::step_parts; ++p) {
    auto& series = plot.series.emplace_back();
    series.name = sk::name_of(sk::StepPart(p));
    for (const Epoch& e : study.epochs) series.x.push_back(e.ranks), series.y.push_back(e.parts[p] / e.seconds);
  }
  plot.write(name);
}
void draw(const std::string& begin, const std::vector<Study>& studies, double samples, const std::string& data) {
  draw(begin + "_epoch.svg", "seconds an epoch", studies, data, true, [](const Study&, const Epoch& e) { return e.seconds; });
  draw(begin + "_images.svg", "images a second", studies, data, true,
       [&](const Study&, const Epoch& e) { return samples / e.seconds; });
  for (const Study& s : studies) draw_parts(begin + "_parts_" + s.network + ".svg", s, data);
  if (studies.front().epochs.front().ranks == 1) {
    const auto speed_up = [](const Study& s, const Epoch& e) { return s.epochs.front().seconds / e.seconds; };
    draw(begin + "_speed_up.svg", "speed-up", studies, data, true, speed_up);
    draw(begin + "_efficiency.svg", "efficiency", studies, data, false,
         [&](const Study& s, const Epoch& e) { return speed_up(s, e) / e.ranks; });
  }
  std::printf("drawn: %s_*.svg\n", begin.c_str());
}

template <int Side> std::vector<Study> each_depth(sk::MpiComm& world, const Options& o, const Data& data) {
  std::vector<Study> studies;
  for (const int depth : o.depths) {
    if (depth == 50) studies.push_back(study<50, Side>(world, o, data));
    else studies.push_back(study<152, Side>(world, o, data));
  }
  return studies;
}
std::vector<Study> each_depth(sk::MpiComm& world, const Options& o, const Data& data) {
#if SKEIN_ALL_DEPTHS
  if (o.side == 128) return each_depth<128>(world, o, data);
#endif
  return each_depth<32>(world, o, data);
}

/// What can be said before the first training, and before the images are made larger. Throws FlagError.
void check(const Options& o) {
  for (const int depth : o.depths)
    if (depth != 50 && depth != 152) throw sk::FlagError("--depths " + std::to_string(depth) + ": they are 50 and 152");
  ex::check_distinct("depths", o.depths);
  ex::check_unused("batch", o.global_batch > 0 && o.batch != Options{}.batch, "beside --global-batch");
  if (o.side == 32 || (o.side == 128 && usual_side == 128)) return;
  throw sk::FlagError("--side " + std::to_string(o.side) +
                      (usual_side == 128
                           ? ": it is 32 or 128"
                           : ": this program was compiled for images of 32 x 32; configure with -DSKEIN_TESTS=OFF for "
                             "128 x 128"));
}
void check(const Options& o, int ranks, std::int64_t samples) {
  const std::string more = ex::more_samples(o.samples > 0);
  ex::check_at_most("ranks", o.ranks, samples, "samples of an epoch", more);
  if (o.global_batch > 0) {
    ex::check_at_most("ranks", o.ranks, o.global_batch, "samples of --global-batch", "a larger --global-batch");
    ex::check_at_most("global-batch", o.global_batch, samples / ranks * ranks, "samples of an epoch", more);
  } else {
    ex::check_at_most("batch", o.batch, samples / ranks, "samples of each rank", more);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](Options o) {
    check(o);
    sk::MpiComm world{argc, argv};
    o.batch = ex::batch_of_rank(o.batch, o.global_batch, world.size());
    if (world.rank() == 0) ex::check_outputs({.record = o.record, .svg = o.svg});
    const auto found = ex::cifar_or_digits(o.data, o.samples);
    check(o, world.size(), found.train.size());
    const Data data{ex::data_in_words(found.source, 0), resized(found.train, o.side)};
    const std::vector<Study> studies = each_depth(world, o, data);
    if (world.rank() != 0) return;
    const auto samples = static_cast<long>(data.images.size());
    const std::string side = std::to_string(o.side), images = std::to_string(samples) + " images of " + side + " x " + side;
    std::printf("%s, %s, %ld %s\n", found.source.c_str(), images.c_str(), o.global_batch > 0 ? o.global_batch : o.batch,
                o.global_batch > 0 ? "of all ranks in a batch" : "a rank and batch");
    print(studies, samples);
    say_simulated(studies, o, samples);
    if (!o.svg.empty()) draw(o.svg, studies, static_cast<double>(samples), data.name + ", " + images);
  });
}
