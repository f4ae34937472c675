// SPDX-License-Identifier: Apache-2.0
// Draws the pictures of README.md and docs into docs/pictures, or checks with --check that they are what would be drawn. What is
// computed (a training on 1, 2 and 4 ranks, tables of schedules) is computed again; what was measured is drawn of the measurement
// that is kept: the tables of bench/README.md, docs/pictures/pipeline.csv, which is written by
//     12_pipeline --threads-as-ranks 4 --stages 4 --network mlp --batch 64 --dilate 20 --rounds 4 --steps 1 --svg NAME
// and docs/pictures/cifar_resnet.csv, which docs/guide/models.md has the command of.
// ctest: --check
// ctest expects: every picture is fresh
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <skein/plan/schedule_svg.hpp>
#include <skein/skein.hpp>

#include "support/recorded_runs.hpp"
#include "support/timelines.hpp"
#ifndef SKEIN_SOURCE_DIR
#define SKEIN_SOURCE_DIR "."
#endif
namespace sk = skein;

namespace {

const std::string root = SKEIN_SOURCE_DIR, folder = root + "/docs/pictures/";

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw sk::FileError(path, -1, "cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// ---- a training on 1, 2 and 4 ranks

using LeNet = sk::nn::Sequential<sk::nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, sk::nn::Relu, sk::nn::MaxPool2d<2>,
                                 sk::nn::Conv2d<16, sk::Kernel<5>>, sk::nn::Relu, sk::nn::MaxPool2d<2>, sk::nn::Flatten,
                                 sk::nn::Linear<120>, sk::nn::Relu, sk::nn::Linear<84>, sk::nn::Relu, sk::nn::Linear<10>>;

constexpr int steps = 100;

/// In double, where rounding stays rounding: in float the curves are apart by what a pre-activation makes of it that is zero to
/// rounding.
std::vector<double> losses_on(int ranks, const sk::data::InMemory<std::uint8_t>& digits) {
  std::vector<double> losses;
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    sk::Model<LeNet, sk::Shape<28, 28, 1>, sk::Cpu, double> model{sk::Seed{42}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.02f, .momentum = 0.9f},
                        sk::parallel::DataParallel{world}};
    const sk::History history =
        trainer.fit(digits, {.epochs = 1, .batch = 128, .record_steps = true, .progress = false, .threads = 1});
    if (world.rank() == 0) losses = history.losses();
  });
  return losses;
}

/// Throws where the curves are apart by what one could see: the picture would be wrong.
std::string loss_curves() {
  const auto digits = sk::data::synthetic_digits(128 * steps, {1});
  sk::draw::Plot plot{.title = "LeNet-5: the loss of every step on 1, 2 and 4 ranks",
                      .x_label = "step (128 samples on all ranks together)",
                      .y_label = "training loss",
                      .from_zero = true};
  plot.series = {{.name = "1 rank", .marks = false, .stroke = 9, .color = "#b9d0ea"},
                 {.name = "2 ranks", .marks = false, .stroke = 4.5, .color = "#f0a04b"},
                 {.name = "4 ranks", .marks = false, .stroke = 1.5, .color = "#1b3a5c"}};
  double apart = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    sk::draw::Series& s = plot.series[i];
    s.y = losses_on(1 << i, digits);
    for (std::size_t step = 0; step < s.y.size(); ++step) {
      s.x.push_back(static_cast<double>(step + 1));
      apart = std::max(apart, std::abs(s.y[step] - plot.series[0].y[step]));
    }
  }
  std::printf("the losses of 1, 2 and 4 ranks are apart by %.2g at most\n", apart);
  if (!(apart <= 1e-8)) throw sk::Error("the losses of 1, 2 and 4 ranks are apart by " + sk::draw::significant(apart));
  return plot.svg();
}

// ---- pipelines

std::string schedules() {
  using namespace sk::plan;
  const TaskLengths half{.forward = 0.5, .input_gradient = 0.5, .weight_gradient = 0.5};  // of twice as many stages
  const Timeline timelines[] = {timeline_of(gpipe(4, 8)), timeline_of(one_f_one_b(4, 8)), timeline_of(interleaved(4, 2, 8), half),
                                timeline_of(zero_bubble(4, 8))};
  return schedule_svg(timelines);
}

/// Of four ranks whose tasks sleep, so that they do not need four cores: each schedule's table, and below it what was measured.
std::string measured_pipeline() {
  std::vector<sk::plan::Timeline> shown;
  for (sk::plan::Timeline& t : experiments::read_timelines(folder + "pipeline.csv"))
    if (t.title.starts_with("1F1B") || t.title.starts_with("zero bubble")) shown.push_back(std::move(t));
  if (shown.size() != 4) throw sk::Error("docs/pictures/pipeline.csv has not 1F1B and zero bubble, each with its table");
  return sk::plan::schedule_svg(shown, {.unit = "ms"});
}

// ---- against PyTorch

/// Time over PyTorch's, and the interval of 95 %.
struct Ratio {
  double ratio = 0, low = 0, high = 0;
};
/// Of the row that begins so, of a bench's table in bench/README.md.
Ratio ratio_of(const std::string& tables, const std::string& bench, const std::string& row) {
  const auto number = [](std::string_view cell) {
    double value = NAN;
    std::from_chars(cell.data() + cell.find_first_not_of(' '), cell.data() + cell.size(), value);
    return value;
  };
  const std::size_t from = tables.find("<!-- bench " + bench + " -->"), at = tables.find("\n| " + row, from);
  if (from == std::string::npos || at == std::string::npos || at > tables.find("<!-- end " + bench, from))
    throw sk::Error("bench/README.md: the table of " + bench + " has no row that begins with \"" + row + "\"");
  std::vector<std::string_view> cells;
  for (std::size_t begin = at + 2; cells.size() < 5; begin += cells.back().size() + 1)
    cells.push_back(std::string_view(tables).substr(begin, tables.find('|', begin) - begin));
  const std::string_view interval = cells[4];
  const Ratio r{number(cells[3]), number(interval), number(interval.substr(interval.find(" - ") + 3))};
  if (!(r.low > 0 && r.low <= r.ratio && r.ratio <= r.high))
    throw sk::Error("bench/README.md: the row \"" + row + "\" of " + bench + " has no ratio within its interval");
  return r;
}

std::string against_pytorch() {
  const std::string tables = read_text(root + "/bench/README.md");
  sk::draw::Plot plot{.title = "Training steps a second, PyTorch = 1",
                      .x_label = "bench/README.md: two cores of an AMD machine with AVX-512; bars of error are 95 % intervals",
                      .categories = {"LeNet-5", "regression 1-80-80-40-1", "MLP 784-512-512-10"},
                      .say_values = true};
  const double none = std::numeric_limits<double>::quiet_NaN();
  plot.series = {{.name = "PyTorch", .y = {1, 1, 1}, .color = "#c8cdd2"},
                 {.name = "skein, 1 thread"},
                 {.name = "skein, 2 threads"},
                 {.name = "skein, 2 processes (DDP)"}};
  const auto add = [&](std::size_t series, const std::string& bench, const std::string& row) {
    const Ratio r = bench.empty() ? Ratio{none, none, none} : ratio_of(tables, bench, row);
    sk::draw::Series& s = plot.series[series];
    s.y.push_back(1 / r.ratio), s.low.push_back(1 / r.high), s.high.push_back(1 / r.low);
  };
  add(1, "lenet", "step, batch 128, 1 thread "), add(2, "lenet", "step, batch 128, 2 threads "),
      add(3, "ddp", "LeNet, batch 2 x 64 ");
  add(1, "function_fit", "step, batch 1000, 1 thread "), add(2, "function_fit", "step, batch 1000, 2 threads ");
  add(3, "ddp", "1-80-80-40-1, batch 2 x 500 ");
  add(1, "mlp", "step, batch 128, 1 thread "), add(2, "mlp", "step, batch 128, 2 threads "), add(3, "", "");
  return plot.svg();
}

// ---- ResNet-20 by four optimizers on 1, 2 and 4 ranks

/// A run that 17_cifar_resnet has recorded.
struct CifarRun {
  std::string optimizer;
  experiments::RecordedRun run;
};
std::vector<CifarRun> cifar_runs() {
  std::vector<CifarRun> runs;
  for (const char* optimizer : {"sgd", "lars", "lamb", "kfac"}) {
    const std::string text = read_text(folder + "cifar_resnet.csv"), name = std::string(" ") + optimizer + " ";
    for (std::size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
      const std::string line = text.substr(from, text.find('\n', from) - from), settings = line.substr(0, line.find(','));
      if (settings.find(name) == std::string::npos) continue;
      for (auto& run : experiments::recorded_runs(folder + "cifar_resnet.csv", settings))
        runs.push_back({optimizer, std::move(run)});
    }
  }
  if (runs.size() != 12) throw sk::Error("docs/pictures/cifar_resnet.csv has not four optimizers on 1, 2 and 4 ranks");
  return runs;
}

std::string cifar_accuracy() {
  sk::draw::Plot plot{.title = "ResNet-20, 10,000 images of CIFAR-10, 2 ranks of one core: test accuracy",
                      .x_label = "seconds of training and validation",
                      .y_label = "test accuracy"};
  for (const auto& [optimizer, run] : cifar_runs()) {
    if (run.ranks != 2) continue;
    sk::draw::Series& s = plot.series.emplace_back();
    s.name = optimizer, s.y = run.more;
    for (std::size_t epoch = 1; epoch <= s.y.size(); ++epoch)
      s.x.push_back(run.seconds * static_cast<double>(epoch) / static_cast<double>(s.y.size()));
  }
  return plot.svg();
}

std::string cifar_speed_up() {
  sk::draw::Plot plot{.title = "ResNet-20, 128 images on all ranks together, two cores: speed-up",
                      .x_label = "ranks",
                      .y_label = "times one rank",
                      .from_zero = true};
  double of_one = 0;
  for (const auto& [optimizer, run] : cifar_runs()) {
    if (run.ranks == 1) of_one = run.seconds, plot.series.emplace_back().name = optimizer;
    plot.series.back().x.push_back(run.ranks), plot.series.back().y.push_back(of_one / run.seconds);
  }
  return plot.svg();
}

// ---- fresh or not

/// Whether the texts are the same but for numbers that differ by no more than this.
bool same(std::string_view a, std::string_view b, double tolerance) {
  const auto number = [](std::string_view& s, double& value) {
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (error == std::errc{}) s.remove_prefix(static_cast<std::size_t>(end - s.data()));
    return error == std::errc{};
  };
  while (!a.empty() && !b.empty()) {
    double x = 0, y = 0;
    const bool left = number(a, x), right = number(b, y);
    if (left != right || !(std::abs(x - y) <= tolerance)) return false;
    if (left) continue;
    if (a[0] != b[0]) return false;
    a.remove_prefix(1), b.remove_prefix(1);
  }
  return a.empty() && b.empty();
}

struct Picture {
  const char* name;
  std::string (*draw)();
  double tolerance;  ///< pixels: a training differs in its last bits between instruction sets
};
constexpr Picture pictures[] = {{"loss_curves", loss_curves, 1},       {"schedules", schedules, 0},
                                {"pipeline", measured_pipeline, 0},    {"against_pytorch", against_pytorch, 0},
                                {"cifar_accuracy", cifar_accuracy, 0}, {"cifar_speed_up", cifar_speed_up, 0}};

int run(bool check) {
  int stale = 0;
  for (const Picture& p : pictures) {
    const std::string path = folder + p.name + ".svg", drawn = p.draw();
    if (!check) {
      sk::draw::write_svg(path, drawn);
      std::printf("drawn: %s\n", path.c_str());
    } else if (!same(read_text(path), drawn, p.tolerance)) {
      std::printf("%s is not what would be drawn today: run 15_pictures without --check, and look at it\n", path.c_str());
      ++stale;
    }
  }
  if (check && stale == 0) std::printf("every picture is fresh\n");
  return stale > 0;
}

struct Options {
  bool check = false;

  void flags(sk::Flags& f) { f("check", check, "draws nothing, and fails where a picture of docs/ is stale"); }
};

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [](const Options& o) { return run(o.check); });
}
