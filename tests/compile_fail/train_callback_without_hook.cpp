// expect: a callback needs one of the hooks on_fit_begin(FitControl&), on_epoch_begin(int, FitControl&)
// SPDX-License-Identifier: Apache-2.0
#include <skein/train/callbacks.hpp>

struct Watcher {
#ifdef SKEIN_TWIN
  void on_epoch_end(skein::train::EpochRecord&, skein::train::FitControl&) {}
#else
  void on_epoch_ended(skein::train::EpochRecord&, skein::train::FitControl&) {}
#endif
};

int main() {
  skein::train::Callbacks callbacks{Watcher{}};
  return callbacks.size() == 1 ? 0 : 1;
}
