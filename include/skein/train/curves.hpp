// SPDX-License-Identifier: Apache-2.0
// The picture of a training as an SVG text: two plots, loss and accuracy (where there is none, the validation's metrics),
// training and validation over the epochs, the loss of single steps as a faint line behind them where it was recorded. A pure
// function of the records.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "../draw/plot.hpp"
#include "records.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {

/// The losses of the steps as at most 400 means of neighbours, placed at fractions of epochs.
draw::Series step_curve(const std::vector<EpochRecord>& epochs, const std::vector<StepRecord>& steps);

/// Logarithmic where the losses span more than a factor of 30; from zero where that is near.
void choose_loss_axis(draw::Plot& plot);

/// The metrics of the validation: what stands in the right half where there is no accuracy, as of a regression.
draw::Plot metric_plot(const std::vector<EpochRecord>& epochs, const draw::Plot& like);

void draw_or_say(const draw::Plot& plot, draw::Svg& svg, double from_left, const char* sentence);

}  // namespace detail

/// The curves of a history as SVG.
std::string draw_curves(const std::vector<EpochRecord>& epochs, const std::vector<StepRecord>& steps = {});

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "curves.ipp"
#endif
