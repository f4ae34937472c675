// SPDX-License-Identifier: Apache-2.0
// The picture of a training as an SVG text: two panels, loss and accuracy, training and validation over the epochs, the loss
// of single steps as a faint line behind them where it was recorded. A pure function of the records; no script, no font file,
// its own white ground, so that it looks the same everywhere.
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "axis.hpp"
#include "records.hpp"
#include "text.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {

/// A line of a panel: what was not measured interrupts it.
struct Curve {
  std::string_view label;
  std::string_view colour;
  double width;
  bool marks;
  std::vector<double> x, y;
  bool any() const {
    for (const double value : y)
      if (std::isfinite(value)) return true;
    return false;
  }
};

/// One plot: a frame, round ticks with faint lines, a title, the curves and their legend.
class Panel {
 public:
  Panel(std::string& svg, double left, double top, double width, double height)
      : svg_(svg), left_(left), top_(top), width_(width), height_(height) {}

  void draw(std::string_view title, std::span<const Curve> curves, const Axis& x, const Axis& y, bool percent, bool legend_low) {
    text(left_, top_ - 14, "start", "font-size=\"15\" font-weight=\"600\" fill=\"#222\"", title);
    for (const double tick : y.ticks) {
      line(left_, at_y(y, tick), left_ + width_, at_y(y, tick), "#e6e6e6");
      text(left_ - 8, at_y(y, tick) + 4, "end", grey, label(tick, y, percent));
    }
    for (const double tick : x.ticks) {
      line(at_x(x, tick), top_ + height_, at_x(x, tick), top_ + height_ + 5, "#888");
      text(at_x(x, tick), top_ + height_ + 20, "middle", grey, label(tick, x, false));
    }
    line(left_, top_ + height_, left_ + width_, top_ + height_, "#888");
    line(left_, top_, left_, top_ + height_, "#888");
    text(left_ + width_ / 2, top_ + height_ + 38, "middle", grey, "epoch");
    for (const Curve& curve : curves) draw(curve, x, y);
    legend(curves, legend_low);
  }
  void say(std::string_view sentence) { text(left_ + width_ / 2, top_ + height_ / 2, "middle", grey, sentence); }

 private:
  static constexpr std::string_view grey = "fill=\"#555\"";
  double at_x(const Axis& x, double value) const { return left_ + width_ * x.at(value); }
  double at_y(const Axis& y, double value) const { return top_ + height_ * (1 - y.at(value)); }

  void number(double value) { append_fixed(svg_, value, 1); }
  void pair(double x, double y) {
    number(x);
    svg_ += ',';
    number(y);
  }
  void attribute(std::string_view name, double value) {
    svg_.append(" ").append(name).append("=\"");
    number(value);
    svg_ += '"';
  }
  void line(double x1, double y1, double x2, double y2, std::string_view colour, double width = 1) {
    svg_ += "<line";
    attribute("x1", x1), attribute("y1", y1), attribute("x2", x2), attribute("y2", y2), attribute("stroke-width", width);
    svg_.append(" stroke=\"").append(colour).append("\"/>\n");
  }
  void text(double x, double y, std::string_view anchor, std::string_view style, std::string_view content) {
    svg_ += "<text";
    attribute("x", x), attribute("y", y);
    svg_.append(" text-anchor=\"").append(anchor).append("\" ").append(style).append(">");
    append_xml(svg_, content);
    svg_ += "</text>\n";
  }
  static std::string label(double tick, const Axis& axis, bool percent) {
    std::string s;
    if (!axis.logarithmic && std::fabs(tick) < 1e-9 * (axis.high - axis.low)) tick = 0;
    append_digits(s, percent ? 100 * tick : tick, 6);
    return percent ? s + " %" : s;
  }
  void draw(const Curve& curve, const Axis& x, const Axis& y) {
    bool open = false;
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
      if (!std::isfinite(curve.y[i])) {
        if (open) svg_ += "\"/>\n";
        open = false;
        continue;
      }
      if (!open) {
        svg_.append("<polyline fill=\"none\" stroke-linejoin=\"round\" stroke=\"").append(curve.colour).append("\"");
        attribute("stroke-width", curve.width);
        svg_ += " points=\"";
      } else {
        svg_ += ' ';
      }
      open = true;
      pair(at_x(x, curve.x[i]), at_y(y, curve.y[i]));
    }
    if (open) svg_ += "\"/>\n";
    if (!curve.marks) return;
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
      if (!std::isfinite(curve.y[i])) continue;
      svg_ += "<circle";
      attribute("cx", at_x(x, curve.x[i])), attribute("cy", at_y(y, curve.y[i])), attribute("r", 2.8);
      svg_.append(" fill=\"").append(curve.colour).append("\"/>\n");
    }
  }
  void legend(std::span<const Curve> curves, bool low) {
    int entries = 0;
    for (const Curve& curve : curves) entries += curve.any();
    double y = low ? top_ + height_ - 14 - 18 * (entries - 1) : top_ + 14;
    const double x = left_ + width_ - 128;
    svg_ += "<rect fill=\"#fff\" fill-opacity=\"0.85\"";
    attribute("x", x - 8), attribute("y", y - 13), attribute("width", 136), attribute("height", 18 * entries + 8);
    svg_ += "/>\n";
    for (const Curve& curve : curves) {
      if (!curve.any()) continue;
      line(x, y, x + 24, y, curve.colour, curve.width > 2 ? curve.width : 1.5);
      text(x + 32, y + 4, "start", "fill=\"#222\"", curve.label);
      y += 18;
    }
  }

  std::string& svg_;
  double left_, top_, width_, height_;
};

/// The ends of the finite values. False where there are none.
inline bool range_of(std::span<const Curve> curves, double& least, double& greatest) {
  bool any = false;
  for (const Curve& curve : curves)
    for (const double value : curve.y) {
      if (!std::isfinite(value)) continue;
      least = any && least < value ? least : value;
      greatest = any && greatest > value ? greatest : value;
      any = true;
    }
  return any;
}

/// The losses of the steps as at most 400 means of neighbours, placed at fractions of epochs.
inline Curve step_curve(std::span<const EpochRecord> epochs, std::span<const StepRecord> steps) {
  Curve curve{"each step", "#c9d6e8", 1.2, false, {}, {}};
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

}  // namespace detail

/// The curves of a history as SVG. The loss axis is logarithmic where the losses span more than a factor of 30.
inline std::string draw_curves(std::span<const EpochRecord> epochs, std::span<const StepRecord> steps = {}) {
  using detail::Curve;
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 380\" width=\"960\" height=\"380\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
      "<rect width=\"960\" height=\"380\" fill=\"#fff\"/>\n";
  constexpr std::string_view blue = "#1f5fa8", orange = "#d9730d";
  const Curve loss{"training", blue, 2.2, true, {}, {}}, accuracy = loss;
  const Curve validation{"validation", orange, 2.2, true, {}, {}};
  Curve losses[3] = {detail::step_curve(epochs, steps), loss, validation}, accuracies[2] = {accuracy, validation};
  for (const EpochRecord& epoch : epochs) {
    for (Curve* curve : {&losses[1], &losses[2], &accuracies[0], &accuracies[1]}) curve->x.push_back(epoch.epoch);
    losses[1].y.push_back(epoch.training.loss);
    losses[2].y.push_back(epoch.validation.loss);
    accuracies[0].y.push_back(epoch.training.accuracy);
    accuracies[1].y.push_back(epoch.validation.accuracy);
  }
  detail::Panel left(svg, 70, 46, 370, 270), right(svg, 560, 46, 370, 270);
  double least = 0, greatest = 1;
  if (!detail::range_of(losses, least, greatest)) {
    left.say("no loss was recorded");
  } else {
    const bool from_zero = !losses[0].x.empty();
    const int first = from_zero ? epochs.front().epoch - 1 : epochs.front().epoch;
    const Axis x = Axis::whole(first, epochs.back().epoch, 9);
    const bool wide = least > 0 && greatest > 30 * least;
    const Axis y = wide ? Axis::log10(least / 1.2, greatest * 1.2)
                        : Axis::linear(least > 0 && least < greatest / 3 ? 0 : least, greatest, 5);
    left.draw(wide ? "loss (logarithmic)" : "loss", losses, x, y, false, false);
  }
  if (!detail::range_of(accuracies, least, greatest)) {
    right.say("no accuracy was recorded");
  } else {
    Axis y = Axis::linear(least, greatest, 5);
    if (y.high > 1) {
      y.high = 1;
      while (!y.ticks.empty() && y.ticks.back() > 1 + 1e-9) y.ticks.pop_back();
    }
    right.draw("accuracy", accuracies, Axis::whole(epochs.front().epoch, epochs.back().epoch, 9), y, true, true);
  }
  return svg + "</svg>\n";
}

}  // namespace skein::inline SKEIN_ABI::train
