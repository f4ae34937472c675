// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/launch/local_devices.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

#include "../../support/thrown.hpp"

namespace sk = skein;
namespace launch = skein::comm::launch;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using Variables = std::map<std::string, std::string>;

static_assert(launch::device_of(0, 1) == 0 && launch::device_of(5, 4) == 1);
static_assert(launch::device_block(0, 1, 8) == launch::DeviceBlock{0, 8});
static_assert(launch::device_block(1, 2, 8) == launch::DeviceBlock{4, 8});
static_assert(launch::device_block(1, 3, 8) == launch::DeviceBlock{2, 5});

namespace {
launch::Lookup in(Variables v) {
  return [v = std::move(v)](const char* name) -> std::optional<std::string> {
    const auto at = v.find(name);
    return at == v.end() ? std::nullopt : std::optional<std::string>(at->second);
  };
}
launch::LaunchEnvironment read(Variables v) { return launch::launch_environment(in(std::move(v))); }
template <class F> std::string thrown(F&& f) { return support::thrown<sk::ArgumentError>(f); }
}  // namespace

TEST_CASE("blocks of devices cover all of them, each once, whatever the number of ranks") {
  for (int devices = 1; devices <= 16; ++devices)
    for (int ranks = 1; ranks <= devices; ++ranks) {
      int next = 0;
      for (int r = 0; r < ranks; ++r) {
        const launch::DeviceBlock b = launch::device_block(r, ranks, devices);
        CHECK(b.begin == next);
        CHECK(b.size() >= devices / ranks);
        CHECK(b.size() <= (devices + ranks - 1) / ranks);
        next = b.end;
      }
      CHECK(next == devices);
    }
  CHECK_THAT(thrown([] { (void)launch::device_block(0, 4, 2); }), Contains("4 ranks cannot each drive a block of 2 GPUs"));
  CHECK_THAT(thrown([] { (void)launch::device_block(4, 4, 8); }), Equals("placement: there is no local rank 4 among 4"));
  CHECK_THAT(thrown([] { (void)launch::device_of(0, 0); }), Contains("sees no GPU"));
}

TEST_CASE("every launcher says where a process is") {
  struct Case {
    const char* what;
    Variables variables;
    std::string launcher;
    int rank, size, local_rank, local_size;
  };
  const std::vector<Case> cases = {
      {"nothing", {}, "none", -1, -1, -1, -1},
      {"mpirun of Open MPI",
       {{"OMPI_COMM_WORLD_RANK", "5"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
       "Open MPI",
       5,
       8,
       1,
       4},
      {"Open MPI inside a Slurm allocation, which knows of one task only",
       {{"OMPI_COMM_WORLD_RANK", "3"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
        {"SLURM_LOCALID", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "1"},
        {"SLURM_NODEID", "0"},
        {"SLURM_TASKS_PER_NODE", "1"}},
       "Open MPI",
       3,
       4,
       3,
       4},
      {"MVAPICH",
       {{"MV2_COMM_WORLD_RANK", "2"},
        {"MV2_COMM_WORLD_SIZE", "4"},
        {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
        {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}},
       "MVAPICH",
       2,
       4,
       0,
       2},
      {"Intel MPI",
       {{"PMI_RANK", "7"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "3"}, {"MPI_LOCALNRANKS", "4"}},
       "Intel MPI or MPICH",
       7,
       8,
       3,
       4},
      {"PMI", {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}}, "PMI", 1, 2, 1, 2},
      {"PMIx without sizes", {{"PMIX_RANK", "1"}, {"PMIX_LOCAL_RANK", "1"}}, "PMIx", 1, -1, 1, -1},
      {"torchrun",
       {{"RANK", "9"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "8"}},
       "torchrun",
       9,
       16,
       1,
       8},
      {"RANK and WORLD_SIZE by hand", {{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "RANK and WORLD_SIZE", 1, 2, -1, -1},
      {"Slurm, uneven nodes",
       {{"SLURM_PROCID", "6"},
        {"SLURM_LOCALID", "0"},
        {"SLURM_NODEID", "3"},
        {"SLURM_NTASKS", "7"},
        {"SLURM_TASKS_PER_NODE", "2(x3),1"}},
       "Slurm",
       6,
       7,
       0,
       1},
      {"a step smaller than its allocation",
       {{"SLURM_PROCID", "1"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_NODEID", "0"},
        {"SLURM_NTASKS", "8"},
        {"SLURM_STEP_NUM_TASKS", "2"},
        {"SLURM_TASKS_PER_NODE", "8"},
        {"SLURM_STEP_TASKS_PER_NODE", "2"}},
       "Slurm",
       1,
       2,
       1,
       2},
      {"Slurm without the list", {{"SLURM_PROCID", "1"}, {"SLURM_LOCALID", "1"}, {"SLURM_NTASKS", "2"}}, "Slurm", 1, 2, 1, -1},
      {"an sbatch script, which is no task of a step",
       {{"SLURM_NTASKS", "4"}, {"SLURM_TASKS_PER_NODE", "4"}},
       "none",
       -1,
       -1,
       -1,
       -1},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    const launch::LaunchEnvironment e = read(c.variables);
    CHECK(e.launcher == c.launcher);
    CHECK(e.rank == c.rank);
    CHECK(e.size == c.size);
    CHECK(e.local_rank == c.local_rank);
    CHECK(e.local_size == c.local_size);
  }
}

TEST_CASE("what contradicts itself is refused by the names of the variables") {
  CHECK_THAT(thrown([] {
               read({{"LOCAL_RANK", "4"}, {"LOCAL_WORLD_SIZE", "4"}});
             }),
             Equals("placement: LOCAL_RANK is 4, but LOCAL_WORLD_SIZE is 4: ranks count from 0"));
  CHECK_THAT(thrown([] {
               read({{"OMPI_COMM_WORLD_LOCAL_RANK", "one"}});
             }),
             Equals("placement: OMPI_COMM_WORLD_LOCAL_RANK is 'one'; a number was expected"));
  CHECK_THAT(thrown([] {
               read({{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "8"}, {"RANK", "0"}, {"WORLD_SIZE", "4"}});
             }),
             Equals("placement: LOCAL_WORLD_SIZE is 8, more than WORLD_SIZE (4)"));
  CHECK_THAT(thrown([] {
               read({{"SLURM_PROCID", "3"}, {"SLURM_LOCALID", "3"}, {"SLURM_NODEID", "0"}, {"SLURM_TASKS_PER_NODE", "2(x3),1"}});
             }),
             Equals("placement: SLURM_LOCALID is 3, but SLURM_TASKS_PER_NODE of this node is 2: ranks count from 0"));
  CHECK_THAT(thrown([] {
               read({{"SLURM_PROCID", "3"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "4"}, {"SLURM_TASKS_PER_NODE", "2(x3),1"}});
             }),
             Equals("placement: SLURM_NODEID is 4, but SLURM_TASKS_PER_NODE ('2(x3),1') names 4 nodes"));
  CHECK_THAT(thrown([] {
               read({{"RANK", "2"}, {"WORLD_SIZE", "2"}});
             }),
             Equals("placement: RANK is 2, but WORLD_SIZE is 2: ranks count from 0"));
}

TEST_CASE("Slurm's lists of tasks and of hosts") {
  CHECK(launch::parse_tasks_per_node("2(x3),1") == std::vector<int>{2, 2, 2, 1});
  CHECK(launch::parse_tasks_per_node("16") == std::vector<int>{16});
  for (const char* wrong : {"", ",", "2(x3", "2(x0)", "2x3", "-1", "1,", "2(x9999999)", "2(x3)1", "99999999999"}) {
    INFO(wrong);
    CHECK_THAT(thrown([&] { (void)launch::parse_tasks_per_node(wrong); }), Contains("a list such as 2(x3),1 was expected"));
  }
  CHECK(launch::first_host("login") == "login");
  CHECK(launch::first_host("a,b") == "a");
  CHECK(launch::first_host("node[03-07,9],login") == "node03");
  CHECK(launch::first_host("r[1,2]n4,x") == "r1n4");
  CHECK(launch::first_host("a,node[1-2]") == "a");
  for (const char* wrong : {"", ",a", "node[", "node[]", "node[x]"}) {
    INFO(wrong);
    CHECK_THAT(thrown([&] { (void)launch::first_host(wrong); }), Contains("is no list of hosts"));
  }
}

TEST_CASE("a rank takes its local rank modulo the devices that it sees") {
  const auto rank = [](int r, Variables more = {}) {
    more["LOCAL_RANK"] = std::to_string(r);
    more["LOCAL_WORLD_SIZE"] = "8";
    return read(more);
  };
  CHECK(launch::resolve_device(read({}), 4) == 0);
  CHECK(launch::resolve_device(rank(3), 8) == 3);
  CHECK(launch::resolve_device(rank(6), 4) == 2);                                   // more ranks than GPUs: they share
  CHECK(launch::resolve_device(rank(6, {{"CUDA_VISIBLE_DEVICES", "6"}}), 1) == 0);  // Slurm's --gpus-per-task=1
  CHECK(rank(0, {{"CUDA_VISIBLE_DEVICES", "GPU-8a,GPU-9b"}}).visible == 2);
  CHECK(rank(0, {{"CUDA_VISIBLE_DEVICES", "0,-1,2"}}).visible == 1);  // CUDA stops there
  CHECK(rank(0, {{"CUDA_VISIBLE_DEVICES", ""}}).visible == 0);
  CHECK_FALSE(rank(0).visible.has_value());
  CHECK_THAT(thrown([&] { (void)launch::resolve_device(rank(0), 0); }), Contains("sees no GPU"));
  CHECK_THAT(
      thrown([&] {
        (void)launch::resolve_device(rank(0, {{"CUDA_VISIBLE_DEVICES", "0,1"}}), 4);
      }),
      Equals("placement: CUDA_VISIBLE_DEVICES names 2 GPUs, the runtime sees 4: was it changed after the first CUDA call?"));
  CHECK(launch::resolve_block(rank(3), 16) == launch::DeviceBlock{6, 8});
  CHECK(launch::resolve_block(read({}), 4) == launch::DeviceBlock{0, 4});
  CHECK(launch::resolve_block(rank(3), 2, true) == launch::DeviceBlock{0, 2});
  CHECK_THAT(thrown([&] { (void)launch::resolve_block(rank(0), 4); }), Contains("8 ranks cannot each drive a block of 4 GPUs"));
}

TEST_CASE("LocalDevices are all that are visible, or those that are named") {
  CHECK(sk::LocalDevices{}.resolve(3) == std::vector<int>{0, 1, 2});
  CHECK(sk::LocalDevices{2, 0}.resolve(4) == std::vector<int>{2, 0});
  CHECK_THAT(thrown([] {
               sk::LocalDevices{0, 2, 0};
             }),
             Equals("LocalDevices: GPU 0 is named twice; each rank drives one of its own"));
  CHECK_THAT(thrown([] { sk::LocalDevices{-1}; }), Contains("-1 is no ordinal of a GPU"));
  CHECK_THAT(thrown([] {
               (void)sk::LocalDevices{0, 2}.resolve(2);
             }),
             Equals("LocalDevices: GPU 2 is not visible: this process sees 2 (CUDA_VISIBLE_DEVICES says which)"));
  CHECK_THAT(thrown([] { (void)sk::LocalDevices{}.resolve(0); }), Contains("sees no GPU"));
}
