// SPDX-License-Identifier: Apache-2.0
// Does every policy learn: LeNet on MNIST to its target, by ranks that are threads and by ranks that are processes? Three ranks
// of a thread each; one of a parameter server's three serves. Without MNIST drawn digits are learned, and no goal is judged.
// ranks: 3
#include <chrono>
#include <functional>

#include <skein/mpi.hpp>
#include <skein/parallel.hpp>
#include <skein/skein.hpp>

#include "support/networks.hpp"
#include "support/report.hpp"

namespace {
namespace sk = skein;
namespace par = sk::parallel;
using bench::LeNet, bench::Line, bench::Report;
using Shape = sk::Shape<28, 28, 1>;
constexpr sk::optim::Sgd usual{.lr = 0.05f, .momentum = 0.9f};
// Where gradients come late, or steps are made of few samples, momentum adds up what is old: a smaller rate, or none of it.
constexpr sk::optim::Sgd outer{.lr = 0.02f}, late{.lr = 0.05f}, small{.lr = 0.01f, .momentum = 0.9f};
constexpr int ranks = 3;

struct Learned {
  double accuracy = 0, seconds = 0;
};

class Course {
 public:
  Course(bool quick) : sets_(sk::data::mnist_or_synthetic({}, 12000)), train_(sets_.train), epochs_(quick ? 1 : 3) {}

  bool real() const { return !sets_.synthetic; }
  const std::string& source() const { return sets_.source; }

  template <class Model, class Policy> Learned fit(Model& model, const Policy& policy, const sk::optim::Sgd& sgd) const {
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sgd, policy};
    const auto begin = std::chrono::steady_clock::now();
    trainer.fit(train_, {.epochs = epochs_, .batch = 96, .progress = false, .threads = 1});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return {trainer.evaluate(sets_.test).accuracy, seconds};
  }
  template <class Policy> Learned whole(const Policy& policy, const sk::optim::Sgd& sgd = usual) const {
    sk::Model<LeNet, Shape> model{sk::Seed{7}};
    return fit(model, policy, sgd);
  }

 private:
  sk::data::SourcedTrainTest sets_;
  sk::data::DatasetView train_;
  int epochs_;
};

struct Lesson {
  std::string name;
  std::function<Learned()> learn;
};

/// Every policy over one communicator.
template <class Comm> std::vector<Lesson> lessons(const Course& c, Comm& world) {
  using Int8 = sk::comm::Int8Codec<>;
  using Top = sk::comm::ErrorFeedback<sk::comm::TopK<100>>;
  using Low = sk::comm::ErrorFeedback<sk::comm::PowerSgd<4>>;
  using Cut = par::balanced_stages<LeNet, Shape, ranks>;
  const auto pipeline = [&c, &world](par::PipelineSchedule schedule, const sk::optim::Sgd& sgd) {
    const par::Pipeline<Cut> pipeline{world, {.schedule = schedule, .micro_batches = 6}};
    auto model = pipeline.template model<Shape>(sk::Seed{7});
    return c.fit(model, pipeline, sgd);
  };
  return {
      {"DataParallel", [&] { return c.whole(par::DataParallel{world}); }},
      {"SyncEvery<4>, models averaged every 16",
       [&] {
         return c.whole(par::Compose{par::DataParallel{world, par::SyncEvery<4>{}}, par::ModelAverage{world, par::Period<16>{}}});
       }},
      {"models averaged every 8",
       [&] {
         return c.whole(par::ModelAverage{world, {.state = true}, par::Period<8>{}});
       }},
      {"post-local SGD",
       [&] {
         return c.whole(par::PostLocalSgd{world, par::SyncFirst<100>{}, par::Period<8>{}});
       }},
      {"DiLoCo, every 16",
       [&] {
         return c.whole(par::ModelAverage{world, par::Period<16>{}, par::DiLoCo{}}, outer);
       }},
      {"parameter server, staleness 4",
       [&] {
         return c.whole(par::ParameterServer{world, par::Staleness<4>{}}, late);
       }},
      {"gossip", [&] { return c.whole(par::Gossip{world}); }},
      {"8-bit wire",
       [&] {
         return c.whole(par::DataParallel{world, par::Compress<Int8>{}});
       }},
      {"top 1 % with error feedback, ring",
       [&] {
         return c.whole(par::DataParallel{world, par::Compress<Top>{}});
       }},
      {"PowerSGD of rank 4, ring",
       [&] {
         return c.whole(par::DataParallel{world, par::Compress<Low>{}, par::Algorithm<par::Ring>{}});
       }},
      {"Reproducible<8>",
       [&] {
         return c.whole(par::DataParallel{world, par::Reproducible<8>{}});
       }},
      {"Sharded<2>",
       [&] {
         return c.whole(par::DataParallel{world, par::Sharded<2>{}});
       }},
      {"pipeline of 3 stages, 1F1B", [=] { return pipeline(par::PipelineSchedule::one_f_one_b, usual); }},
      {"pipeline of 3 stages, PipeDream", [=] { return pipeline(par::PipelineSchedule::pipedream, small); }},
  };
}
}  // namespace

int main(int argc, char** argv) {
  sk::MpiComm world{argc, argv};
  const bench::Options options = bench::options(argc, argv);
  const Course course(options.quick);
  std::optional<Report> report;
  if (world.rank() == 0) {
    report.emplace("policies", options);
    std::printf("%s; three ranks of a thread each\n", course.source().c_str());
  }
  auto processes = lessons(course, world);
  for (std::size_t i = 0; i < processes.size(); ++i) {
    Learned threads;
    if (world.rank() == 0)
      sk::spawn(ranks, [&](sk::ThreadComm& comm) {
        const Learned l = lessons(course, comm)[i].learn();
        if (comm.rank() == 0) threads = l;
      });
    world.barrier();
    const Learned mpi = processes[i].learn();
    world.barrier();
    if (!report) continue;
    for (const auto& [where, l] : {std::pair{"threads", threads}, std::pair{"processes", mpi}}) {
      Line line{.metric = processes[i].name + ", " + where, .ours = 100 * l.accuracy, .unit = "%", .must = {97, {}, true}};
      line.accepted = course.real() && !options.quick;
      line.add("after " + bench::number(l.seconds) + " s");
      report->add(line);
    }
  }
  return report ? report->finish() : 0;
}
