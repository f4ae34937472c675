// SPDX-License-Identifier: Apache-2.0
// Graph<Items...>: a network that is not a chain. Its edges have names, which are types without a definition:
//
//     struct image; struct table; struct seen; struct known; struct both; struct digit; struct parity;
//     using Net = nn::Graph<
//         nn::Input<image, Shape<28, 28, 1>>, nn::Input<table, Shape<10>>,
//         nn::Apply<Encoder, nn::From<image>, nn::To<seen>>, nn::Apply<nn::Linear<16>, nn::From<table>, nn::To<known>>,
//         nn::Apply<nn::Concatenate, nn::From<seen, known>, nn::To<both>>,
//         nn::Apply<nn::Linear<10>, nn::From<both>, nn::To<digit>>, nn::Apply<nn::Linear<2>, nn::From<both>, nn::To<parity>>,
//         nn::Output<digit>, nn::Output<parity>>;
//     using Net_model = sk::Model<Net, Net::input>;
//
// A sample is one row in which the inputs lie one after the other, as its outputs do in a row of outputs. Not included by
// skein/skein.hpp.
#pragma once
#include <array>
#include <type_traits>

#include "fused_network.hpp"
#include "graph/check.hpp"
#include "graph/run.hpp"
#include "program.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// An edge that comes from outside: the whole input of the graph, or a part of its row with a shape of its own.
template <class Name, class Part = void> struct Input {
  using graph_item = Input;
  using writes = Name;
  using reads = List<>;
  using layer = void;
  static constexpr GraphItem item() {
    if constexpr (std::is_void_v<Part>) return {.kind = GraphItem::Kind::input};
    else return {.kind = GraphItem::Kind::input, .part = Part::extents};
  }
};

/// The edges that an Apply reads, by name: one for a layer, two to eight for a join.
template <class... Names> struct From {};
/// The edge that an Apply writes.
template <class Name> struct To {};

/// A layer or container of one edge, or a join (nn/graph/join.hpp) of several.
template <class Layer, class Reads, class Writes> struct Apply;
template <class Layer, class... Names, class Name> struct Apply<Layer, From<Names...>, To<Name>> {
  using graph_item = Apply;
  using writes = Name;
  using reads = List<Names...>;
  using layer = Layer;
  static constexpr GraphItem item() {
    return {.kind = Join<Layer> ? GraphItem::Kind::join : GraphItem::Kind::layer, .joins_two = Join<Layer> && !JoinsMany<Layer>};
  }
};

/// An edge that goes outside. Of several the outputs lie one after the other in a flat row.
template <class Name> struct Output {
  using graph_item = Output;
  using writes = void;
  using reads = List<Name>;
  using layer = void;
  static constexpr GraphItem item() { return {.kind = GraphItem::Kind::output}; }
};

namespace detail {
template <class T> inline constexpr bool is_graph_item = requires { typename T::graph_item; };

/// Values of a row that holds all Inputs.
template <class... Items> constexpr int input_count() {
  long n = 0;
  auto one = [&n]<class T>(List<T>*) {
    if constexpr (is_graph_item<T>)
      if constexpr (std::is_same_v<typename T::reads, List<>>)
        if (T::item().part.rank > 0) n += T::item().part.count();
  };
  const int each[] = {(one(static_cast<List<Items>*>(nullptr)), 0)...};
  (void)each;
  return n > 0 ? static_cast<int>(n) : 1;
}

/// The extents of all Inputs that have such.
template <class... Items> struct InputParts {
  template <class T> static constexpr bool shaped() {
    if constexpr (!is_graph_item<T>) return false;
    else return std::is_same_v<typename T::reads, List<>> && T::item().part.rank > 0;
  }
  static constexpr auto value = [] {
    std::array<Extents, (std::size_t{0} + ... + std::size_t{shaped<Items>()})> parts{};
    std::size_t n = 0;
    auto one = [&]<class T>(List<T>*) {
      if constexpr (shaped<T>()) parts[n++] = T::item().part;
    };
    const int each[] = {(one(static_cast<List<Items>*>(nullptr)), 0)...};
    (void)each;
    return parts;
  }();
};

/// The first of Names that is Name; -1: none is.
template <class Name, class... Names> constexpr int place_of() {
  constexpr bool same[] = {__is_same(Name, Names)..., false};
  for (int i = 0; i < static_cast<int>(sizeof...(Names)); ++i)
    if (same[i]) return i;
  return -1;
}
template <int I, class Item, class... Names, class... All> constexpr GraphItem resolved(List<Names...>*, List<All...>*) {
  GraphItem item = Item::item();
  item.read_count = sizeof...(Names);
  const int found[] = {place_of<Names, All...>()..., -1};
  for (int k = 0; k < item.read_count && k < JoinInputs::most; ++k) item.reads[static_cast<std::size_t>(k)] = found[k];
  item.written_before = item.writes() && place_of<typename Item::writes, All...>() != I;
  return item;
}
template <class Item, class Device> struct RewriteItem { using type = Item; };
template <class L, class From_, class To_, class Device>
requires(!Join<L>) struct RewriteItem<Apply<L, From_, To_>, Device> {
  using type = Apply<typename Rewrite<L, Device>::type, From_, To_>;
};
}  // namespace detail

/// Edges are written before they are read, in the order of the items; each by one, and read by any number. What several read gets
/// their gradients added up in a fixed order. Layers are named in files by their place among the items that are Apply.
template <class... Items> struct Graph {
  using graph_items = List<Items...>;
  static constexpr int size = sizeof...(Items);
  static_assert(size > 0, "a Graph needs at least an Input, an Apply and an Output");
  static constexpr bool sound = (detail::is_graph_item<Items> && ...);

  /// The input of a model where the Inputs have shapes: a row of all their values.
  using input = Shape<detail::input_count<Items...>()>;
  static constexpr auto input_parts = detail::InputParts<Items...>::value;
  template <class Device> using rewritten = Graph<typename detail::RewriteItem<Items, Device>::type...>;

  static constexpr GraphPlan<size> plan(Extents in) {
    GraphPlan<size> p;
    p.total.output = in;
    if constexpr (sound) {
      wire(p, std::make_integer_sequence<int, size>{});
      p.find_wiring_fault();
      p.begin(in);
      if (p.fault == GraphFault::none) {
        int i = 0;
        const int each[] = {(measure<Items>(p, i++), 0)...};
        (void)each;
        p.finish(in);
      }
    } else {
      p.fault = GraphFault::not_an_item;
    }
    if (p.fault != GraphFault::none && p.total.fault == Fault::none) p.total.fault = Fault::graph;
    return p;
  }
  static constexpr MemoryRequirements analyze(Extents in) { return plan(in).total; }

  /// The graph as plain data: see nn/program.hpp.
  template <class P> static constexpr int emit(P& p, int path, int x, Extents& in) {
    const auto q = plan(in);
    if constexpr (sound) {
      if (q.fault == GraphFault::none) {  // else it has been refused already: nothing shall cascade
        Emission<P> e{p, path, x, q, {}};
        int i = 0;
        const int each[] = {(e.template item<Items>(i++), 0)...};
        (void)each;
        x = q.outputs == 1 ? e.tensors[static_cast<std::size_t>(q.output)] : e.row("output", x, in, q.total.output);
      }
    }
    in = q.total.output;
    return x;
  }

 private:
  template <class P> struct Emission {
    P& p;
    int path, x;
    const GraphPlan<size>& q;
    std::array<int, static_cast<std::size_t>(size)> tensors{};
    int index = 0;  // of the items that are Apply

    /// What is no layer: a part of the input, a join, the row of the outputs.
    constexpr int add(std::string_view kind, int at, int in, const Extents& from, const Extents& to) {
      plan::LayerNode o{.kind = kind, .in = in, .path = at, .input = from, .output = to, .parameter = p.stored_parameters};
      o.out = p.tensor(to.count());
      p.layer_nodes[static_cast<std::size_t>(p.layer_node_count++)] = o;
      return o.out;
    }
    constexpr int row(std::string_view name, int in, const Extents& from, const Extents& to) {
      return add(name, p.path(path, 0, name), in, from, to);
    }
    template <class Item> constexpr void item(int i) {
      using L = typename Item::layer;
      const Extents to = q.edges[static_cast<std::size_t>(i)].extents;
      int& out = tensors[static_cast<std::size_t>(i)];
      const int read = q.items[static_cast<std::size_t>(i)].reads[0];
      if constexpr (Join<L>) {
        out = add(detail::kind_of<L>(), p.path(path, index++), tensors[static_cast<std::size_t>(read)], to, to);
        plan::LayerNode& o = p.layer_nodes[static_cast<std::size_t>(p.layer_node_count - 1)];
        const GraphItem& own = q.items[static_cast<std::size_t>(i)];
        for (int k = 1; k < own.read_count; ++k)
          (k == 1 ? o.in2 : o.more[static_cast<std::size_t>(k - 2)]) =
              tensors[static_cast<std::size_t>(own.reads[static_cast<std::size_t>(k)])];
        o.flops = join_flops(q.nodes[static_cast<std::size_t>(i)].join);
      } else if constexpr (!std::is_void_v<L>) {
        Extents e = q.edges[static_cast<std::size_t>(read)].extents;
        out = detail::emit_child<L>(p, path, index, tensors[static_cast<std::size_t>(read)], e);
      } else if (q.items[static_cast<std::size_t>(i)].kind == GraphItem::Kind::input) {
        out = q.split_input ? row("input", x, to, to) : x;
      }
    }
  };
  template <int... I> static constexpr void wire(GraphPlan<size>& p, std::integer_sequence<int, I...>) {
    using Written = List<typename Items::writes...>;
    const int each[] = {
        (p.item(I) = detail::resolved<I, Items>(static_cast<typename Items::reads*>(nullptr), static_cast<Written*>(nullptr)),
         0)...};
    (void)each;
  }
  template <class Item> static constexpr void measure(GraphPlan<size>& p, int i) {
    using L = typename Item::layer;
    if constexpr (Join<L>) p.set_join(i, join_spec<L>(p.inputs_of(i)));
    else if constexpr (!std::is_void_v<L>) p.set_layer(i, with_room(nn::analyze<L>(p.edge(p.read(i, 0)).extents)));
  }
};

/// Where the values of an output are in a row of a graph's outputs.
struct OutputColumns {
  long begin = 0, count = 0;
  int number = -1;     ///< which of the Outputs; -1: none has the name
  long positions = 1;  ///< that take a label each, elsewhere: T of (T, N)
};
/// How many outputs network L has.
template <GraphLike L, class In> constexpr int output_count() { return L::plan(In::extents).outputs; }
/// The columns of the output of that name of network L at input In.
template <class Name, GraphLike L, class In> constexpr OutputColumns output_columns() {
  const auto p = L::plan(In::extents);
  return []<class... Items>(List<Items...>*, const auto& q) {
    constexpr int at =
        detail::place_of<List<Name>,
                         std::conditional_t<std::is_void_v<typename Items::writes>, typename Items::reads, void>...>();
    OutputColumns c;
    if constexpr (at >= 0) {
      const Extents& e = q.edges[static_cast<std::size_t>(q.items[at].reads[0])].extents;
      c = {q.nodes[at].offset, e.count(), 0, e.count() / e.last()};
      for (int i = 0; i < at; ++i) c.number += !q.items[static_cast<std::size_t>(i)].writes();
    }
    return c;
  }(static_cast<typename L::graph_items*>(nullptr), p);
}

}  // namespace skein::inline SKEIN_ABI::nn
