// SPDX-License-Identifier: Apache-2.0
// All metrics: Accuracy, TopK, BinaryAccuracy, Precision, Recall, F1, Auc, ConfusionMatrix, MeanAbsoluteError, R2, OwnMetric and
// AllSamples for one's own, and AnyMetric for lists of them.
#pragma once
#include "metric.hpp"
#include "metrics/accuracy.hpp"
#include "metrics/all_samples.hpp"
#include "metrics/any_metric.hpp"
#include "metrics/area_under_curve.hpp"
#include "metrics/class_scores.hpp"
#include "metrics/confusion_matrix.hpp"
#include "metrics/mean_absolute_error.hpp"
#include "metrics/own_metric.hpp"
#include "metrics/r2.hpp"
