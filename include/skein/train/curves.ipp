// SPDX-License-Identifier: Apache-2.0
// The bodies of curves.hpp.
#pragma once
#include "curves.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE draw::Series step_curve(const std::vector<EpochRecord>& epochs, const std::vector<StepRecord>& steps) {
  draw::Series curve{.name = "each step", .marks = false, .stroke = 1.2, .color = "#c9d6e8"};
  if (epochs.empty()) return curve;
  const std::size_t group = (steps.size() + 399) / 400;
  std::size_t epoch = 0;
  for (std::size_t i = 0; i < steps.size(); i += group) {
    const std::size_t end = i + group < steps.size() ? i + group : steps.size();
    double sum = 0;
    for (std::size_t j = i; j < end; ++j) sum += steps[j].loss;
    const double middle = 0.5 * static_cast<double>(steps[i].step + steps[end - 1].step);
    while (epoch + 1 < epochs.size() && middle > static_cast<double>(epochs[epoch].step)) ++epoch;
    const double from = epoch == 0 ? 0.0 : static_cast<double>(epochs[epoch - 1].step);
    const double length = static_cast<double>(epochs[epoch].step) - from;
    curve.x.push_back(epochs[epoch].epoch - 1 + (length > 0 ? (middle - from) / length : 0));
    curve.y.push_back(sum / static_cast<double>(end - i));
  }
  return curve;
}

SKEIN_INLINE void choose_loss_axis(draw::Plot& plot) {
  double least = HUGE_VAL, greatest = -HUGE_VAL;
  for (const draw::Series& s : plot.series)
    for (const double v : s.y)
      if (std::isfinite(v)) least = std::min(least, v), greatest = std::max(greatest, v);
  plot.log_y = least > 0 && greatest > 30 * least;
  plot.from_zero = !plot.log_y && least > 0 && least < greatest / 3;
  if (plot.log_y) plot.title += " (logarithmic)";
}

SKEIN_INLINE draw::Plot metric_plot(const std::vector<EpochRecord>& epochs, const draw::Plot& like) {
  draw::Plot plot = like;
  plot.title = "metrics, validation", plot.percent = false;
  plot.series.clear();
  for (const EpochRecord& epoch : epochs)
    for (int i = 0; i < epoch.validation.metrics(); ++i) {
      const std::string name(epoch.validation.metric_name(i));
      auto series = std::find_if(plot.series.begin(), plot.series.end(), [&](const auto& s) { return s.name == name; });
      if (series == plot.series.end()) {
        const std::size_t color = plot.series.size() % std::size(draw::palette);
        plot.series.push_back({.name = name, .color = draw::palette[color]});
        series = std::prev(plot.series.end());
      }
      series->x.push_back(epoch.epoch);
      series->y.push_back(epoch.validation.metric_value(i));
    }
  return plot;
}

SKEIN_INLINE void draw_or_say(const draw::Plot& plot, draw::Svg& svg, double from_left, const char* sentence) {
  if (plot.any()) plot.draw(svg, from_left);
  else svg.words(from_left + plot.width / 2, plot.height / 2, sentence, {.anchor = "middle", .color = draw::grey});
}

}  // namespace skein::inline SKEIN_ABI::train::detail

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE std::string draw_curves(const std::vector<EpochRecord>& epochs, const std::vector<StepRecord>& steps) {
  const draw::Series training{.name = "training", .color = draw::palette[0]},
      validation{.name = "validation", .color = draw::palette[1]};
  draw::Plot loss{.title = "loss", .x_label = "epoch", .whole_x = true, .width = 480, .height = 380}, accuracy = loss;
  loss.series = {detail::step_curve(epochs, steps), training, validation};
  accuracy.series = {training, validation};
  accuracy.title = "accuracy", accuracy.percent = true;
  for (const EpochRecord& epoch : epochs) {
    for (draw::Series* s : {&loss.series[1], &loss.series[2], &accuracy.series[0], &accuracy.series[1]})
      s->x.push_back(epoch.epoch);
    loss.series[1].y.push_back(epoch.training.loss);
    loss.series[2].y.push_back(epoch.validation.loss);
    accuracy.series[0].y.push_back(epoch.training.accuracy);
    accuracy.series[1].y.push_back(epoch.validation.accuracy);
  }
  detail::choose_loss_axis(loss);
  if (!accuracy.any()) accuracy = detail::metric_plot(epochs, accuracy);
  draw::Svg svg(960, 380);
  detail::draw_or_say(loss, svg, 0, "no loss was recorded");
  detail::draw_or_say(accuracy, svg, 480, "no accuracy and no other metric was recorded");
  return svg.text();
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
