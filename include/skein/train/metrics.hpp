// SPDX-License-Identifier: Apache-2.0
// All metrics: Accuracy, TopK, BinaryAccuracy, ConfusionMatrix, MeanAbsoluteError, OwnMetric, and AnyMetric for lists of them.
#pragma once
#include "metric.hpp"
#include "metrics/accuracy.hpp"
#include "metrics/any_metric.hpp"
#include "metrics/confusion_matrix.hpp"
#include "metrics/mean_absolute_error.hpp"
#include "metrics/own_metric.hpp"
