// SPDX-License-Identifier: Apache-2.0
// The places that a GraphPlan gives to edges and gradients, tried with random graphs: what the plan says is carried out with one
// number an array, and a write makes whatever it overlaps unreadable.
#include <skein/nn/graph/place.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;
namespace nn = skein::nn;

namespace {
constexpr int most = 12;
using Plan = nn::GraphPlan<most>;
using Kind = nn::GraphItem::Kind;
using Place = nn::EdgePlace;

enum class Space { caller_x, caller_y, caller_dy, caller_dx, kept, scratch, whole };

struct Array {
  Space space{};
  long begin = 0, width = 0;
  bool operator==(const Array& o) const { return space == o.space && begin == o.begin; }
};

/// Arrays with one number each.
class Memory {
 public:
  void write(const Array& a, double value) {
    std::erase_if(cells_, [&](const Cell& c) {
      return c.array.space == a.space && c.array.begin < a.begin + a.width && a.begin < c.array.begin + c.array.width;
    });
    cells_.push_back({a, value});
  }
  /// Nothing where something else was written over it.
  std::optional<double> read(const Array& a) const {
    for (const Cell& c : cells_)
      if (c.array == a) return c.value;
    return {};
  }

 private:
  struct Cell {
    Array array;
    double value;
  };
  std::vector<Cell> cells_;
};

/// A graph of `most` items: one or two inputs, layers and joins, one or two outputs, of which one may be read by a join too.
struct RandomGraph {
  Plan plan;
  bool wants_dx = true;
  std::array<std::array<double, nn::JoinInputs::most>, most> factor{};  // of the gradient of item i to that of its k-th edge
  std::mt19937 random;

  explicit RandomGraph(std::uint32_t seed) : random(seed) {
    wants_dx = one_of(2) == 0;
    const int inputs = one_of(3) == 0 ? 2 : 1, outputs = one_of(4) == 0 ? 2 : 1, end = most - outputs;
    std::vector<int> unread;
    int other = 0;  // the second output's edge
    for (int i = 0; i < end; ++i) {
      nn::GraphItem& item = plan.item(i);
      if (i < inputs) {
        if (inputs > 1) item.part = {1, {width()}};
      } else if (i + 1 < end) {
        item.kind = one_of(5) < 2 ? Kind::join : Kind::layer;
        for (int k = item.kind == Kind::layer ? 1 : 2 + one_of(2); k > 0; --k)
          reads(item, unread, unread.empty() || one_of(2) == 0 ? one_of(i) : unread[index(unread)]);
      } else {  // the last one reads what nobody has read
        if (outputs == 2) other = unread[index(unread)];
        if (outputs == 2 && unread.size() > 1) std::erase(unread, other);
        item.kind = unread.size() > 1 ? Kind::join : Kind::layer;
        while (!unread.empty()) reads(item, unread, unread.back());
      }
      unread.push_back(i);
    }
    for (int i = end; i < most; ++i) {
      plan.item(i).kind = Kind::output;
      reads(plan.item(i), unread, i == end ? end - 1 : other);
    }
    describe(inputs);
  }
  static void reads(nn::GraphItem& item, std::vector<int>& unread, int e) {
    if (item.read_count < nn::JoinInputs::most) item.reads[static_cast<std::size_t>(item.read_count++)] = e;
    std::erase(unread, e);
  }
  std::size_t index(const std::vector<int>& v) { return static_cast<std::size_t>(one_of(static_cast<int>(v.size()))); }
  int one_of(int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); }
  int width() { return std::array{5, 20, 40}[static_cast<std::size_t>(one_of(3))]; }

  void describe(int inputs) {
    sk::Extents in{1, {inputs > 1 ? plan.item(0).part.e[0] + plan.item(1).part.e[0] : width()}};
    plan.find_wiring_fault();
    if (plan.fault != nn::GraphFault::none) return;
    plan.begin(in);
    for (int i = 0; i < most; ++i) {
      const nn::GraphItem& item = plan.item(i);
      for (double& f : factor[static_cast<std::size_t>(i)]) f = 1 + one_of(7);
      if (item.kind == Kind::layer) {
        nn::MemoryRequirements s;
        s.aliases = one_of(4) == 0;
        s.output = s.aliases ? plan.edge(plan.read(i, 0)).extents : sk::Extents{1, {width()}};
        if (s.aliases) factor[static_cast<std::size_t>(i)][0] = 1;
        if (!s.aliases) s.saves_input = one_of(2) == 0, s.saves_output = one_of(3) == 0, s.whole_gradient = one_of(4) == 0;
        plan.set_layer(i, s);
      } else if (item.kind == Kind::join) {
        nn::JoinSpec s;
        bool equal = true;
        for (int k = 1; k < item.read_count; ++k)
          equal = equal && plan.edge(plan.read(i, k)).extents == plan.edge(plan.read(i, 0)).extents;
        s.hands_gradient_on = equal && one_of(2) == 0;
        s.output = equal ? plan.edge(plan.read(i, 0)).extents : sk::Extents{1, {width()}};
        s.backward_reads_inputs = !s.hands_gradient_on && one_of(3) > 0;
        if (s.hands_gradient_on) factor[static_cast<std::size_t>(i)].fill(1);
        plan.set_join(i, s);
      }
    }
    plan.finish(in);
  }
  bool sound() const { return plan.fault == nn::GraphFault::none; }
};

/// Carries a plan out as Node<Graph> does.
struct Run {
  RandomGraph& g;
  Plan& plan = g.plan;
  Memory memory{};
  std::array<std::optional<Array>, most> gradients{};
  std::array<double, most> expected{};

  Array place(int i) {
    const nn::GraphEdge& e = plan.edge(i);
    if (e.place == Place::input) return {Space::caller_x, 0, 1};
    if (e.place == Place::output) return {Space::caller_y, 0, 1};
    return {e.place == Place::kept ? Space::kept : Space::scratch, e.at.offset, e.at.width};
  }
  Array own_gradient(int e) {
    const nn::GraphEdge& edge = plan.edge(e);
    if (edge.gradient_is_dx) return {Space::caller_dx, 0, 1};
    return {edge.whole ? Space::whole : Space::scratch, edge.gradient.offset, edge.gradient.width};
  }
  bool wanted(int e) { return g.wants_dx || !plan.edge(e).from_input; }

  /// Each item finds what it reads.
  void forward() {
    for (int i = 0; i < most; ++i) {
      const nn::GraphItem& item = plan.item(i);
      for (int k = 0; k < item.read_count; ++k) {
        const int source = plan.edge(plan.read(i, k)).source;
        CHECK(memory.read(place(source)) == source);
      }
      if (item.writes() && plan.edge(i).source == i) memory.write(place(i), i);
      for (int k = 0; k < item.read_count; ++k) {  // while it writes, too
        const int source = plan.edge(plan.read(i, k)).source;
        CHECK(memory.read(place(source)) == source);
      }
    }
  }
  /// By plain sums.
  void expect() {
    expected.fill(0);
    for (int i = most - 1; i >= 0; --i)
      for (int k = 0; k < plan.item(i).read_count; ++k)
        expected[static_cast<std::size_t>(plan.read(i, k))] +=
            plan.item(i).writes()
                ? g.factor[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] * expected[static_cast<std::size_t>(i)]
                : 1;
  }
  void backward() {
    expect();
    memory.write({Space::caller_dy, 0, 1}, 1);
    for (int i = 0; i < most; ++i) {
      if (plan.item(i).writes() || !wanted(plan.read(i, 0))) continue;
      const int e = plan.read(i, 0);
      if (plan.outputs > 1) memory.write(own_gradient(e), 1);
      gradients[static_cast<std::size_t>(e)] = plan.outputs > 1 ? own_gradient(e) : Array{Space::caller_dy, 0, 1};
    }
    for (int i = most - 1; i >= 0; --i)
      if (plan.item(i).writes() && wanted(i)) backward_item(i);
  }
  void backward_item(int i) {
    const nn::GraphItem& item = plan.item(i);
    const Array own = *gradients[static_cast<std::size_t>(i)];
    CHECK(memory.read(own) == expected[static_cast<std::size_t>(i)]);
    if (plan.edge(i).whole) CHECK((own.space == Space::whole || own.space == Space::caller_dy));
    check_kept(i);
    std::array<std::optional<Array>, nn::JoinInputs::most> parts{};
    for (int k = 0; k < item.read_count; ++k) {
      const nn::GraphRead& r = plan.node(i).reads[static_cast<std::size_t>(k)];
      if (!wanted(plan.read(i, k))) continue;
      if (r.hands_on) {
        parts[static_cast<std::size_t>(k)] = own;
        continue;
      }
      const Array to = r.owned ? Array{Space::scratch, r.temporary.offset, r.temporary.width} : own_gradient(plan.read(i, k));
      memory.write(to,
                   g.factor[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] * expected[static_cast<std::size_t>(i)]);
      parts[static_cast<std::size_t>(k)] = to;
      CHECK(memory.read(own) == expected[static_cast<std::size_t>(i)]);  // the next part is made of it
    }
    for (int k = 0; k < item.read_count; ++k)
      if (parts[static_cast<std::size_t>(k)]) take(i, k, *parts[static_cast<std::size_t>(k)]);
  }
  void take(int i, int k, const Array& part) {
    const int e = plan.read(i, k);
    const nn::GraphRead& r = plan.node(i).reads[static_cast<std::size_t>(k)];
    auto& held = gradients[static_cast<std::size_t>(e)];
    const std::optional<double> value = memory.read(part);
    CHECK(value.has_value());
    if (r.first && !r.copied) {
      held = part;
      return;
    }
    double sum = value.value_or(0);
    if (!r.first) {
      const std::optional<double> before = memory.read(*held);
      CHECK(before.has_value());
      sum += before.value_or(0);
    }
    held = own_gradient(e);
    memory.write(*held, sum);
  }
  /// What backward of item i reads of forward is there.
  void check_kept(int i) {
    const nn::MemoryRequirements& s = plan.node(i).needs;
    const auto there = [&](int e) {
      const int source = plan.edge(e).source;
      const Place p = plan.edge(source).place;
      CHECK(p != Place::scratch);
      CHECK(memory.read(place(source)) == source);
    };
    if (s.saves_output) there(i);
    for (int k = 0; (s.saves_input || plan.node(i).join.backward_reads_inputs) && k < plan.item(i).read_count; ++k)
      there(plan.read(i, k));
  }
};
}  // namespace

TEST_CASE("whatever the graph, what it reads forward and backward has not been written over", "[nn]") {
  int tried = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    RandomGraph g(seed);
    if (!g.sound()) continue;
    ++tried;
    CAPTURE(seed);
    Run run{g};
    run.forward();
    run.backward();
  }
  CHECK(tried > 1000);
}
