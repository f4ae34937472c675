// expect: an exchange with serialize() or saved_as() says static constexpr bool keeps_state = true: else its state is not saved with the training
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <skein/comm/self/self_comm.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/exchange_by.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

struct Mine {
  static constexpr std::string_view name = "mine";
  template <class Comm, class Scalar, class Device> struct On : sk::parallel::ExchangeOn<Comm, Scalar, Device> {
    using sk::parallel::ExchangeOn<Comm, Scalar, Device>::ExchangeOn;
    void begin(std::size_t i) { this->comm().all_reduce(this->bucket(i), sk::Sum{}); }
    bool poll(std::size_t) { return true; }
    void wait(std::size_t) {}
#ifdef SKEIN_TWIN
    static constexpr bool keeps_state = true;
#endif
    std::string saved_as() const { return "mine"; }
    template <class Archive> void serialize(Archive& archive, unsigned) { archive& steps; }
    int steps = 0;
  };
};

int main() {
  sk::SelfComm world;
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{},
                      sk::parallel::DataParallel{world, sk::parallel::ExchangeBy<Mine>{}}};
}
