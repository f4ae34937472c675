// SPDX-License-Identifier: Apache-2.0
// K-FAC, as a transform of the gradient: chain(Kfac{...}, Sgd{.lr = ...}). Martens and Grosse, "Optimizing neural networks with
// Kronecker-factored approximate curvature", ICML 2015, arXiv:1503.05671; convolutions: Grosse and Martens, arXiv:1602.01407.
// With the formulas of kfac-pytorch (Pauloski et al., SC 2020, arXiv:2007.00784), and the defaults of its example on CIFAR-10.
#pragma once
#include "kfac_options.hpp"
#include "kfac_state.hpp"
