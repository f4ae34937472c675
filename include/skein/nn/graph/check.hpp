// SPDX-License-Identifier: Apache-2.0
// What a wrongly wired Graph gets to read: one sentence, with the edge's name beside it.
#pragma once
#include "../check.hpp"
#include "place.hpp"

namespace skein::inline SKEIN_ABI {

namespace check {

/// The names read as a sentence in the compilers' trails: edge<skip>::of_graph<GraphFault::never_read>.
template <class Name> struct edge {
  template <nn::GraphFault F> struct of_graph {
    using enum nn::GraphFault;
    static_assert(F != none, "Graph: it has a fault of which the library has no sentence: report it");
    static_assert(F != not_an_item, "a Graph is made of Input<...>, Apply<Layer, From<...>, To<...>> and Output<...>");
    static_assert(F != unknown_edge, "Graph: nothing writes this edge: name it in an Input, or in the To of an Apply before");
    static_assert(F != read_before_written, "Graph: this edge is read before it is written: put the Apply that writes it before");
    static_assert(F != written_twice, "Graph: two items write this edge: give one of them another name");
    static_assert(F != never_read, "Graph: nothing reads this edge: read it, make it an Output, or leave it out");
    static_assert(F != no_input, "Graph: it has no Input");
    static_assert(F != no_output, "Graph: it has no Output");
    static_assert(F != output_twice, "Graph: this edge is an Output twice");
    static_assert(F != inputs_mixed, "Graph: of several Inputs each has a shape: Input<name, Shape<...>>");
    static_assert(F != inputs_differ,
                  "Graph: the shapes of its Inputs do not add up to the input that it gets: give the model Net::input");
    static_assert(
        F != tokens_beside_numbers,
        "Graph: Inputs with shapes are parts of one row of floats, and this one is Tokens<T>: tokens cannot stand beside "
        "numbers yet: give categories as one-hot values (data::TableEncoder::one_hot), or let Input<name> be all of the tokens");
    static_assert(F != output_of_tokens,
                  "Graph: this Output is the tokens of the input, which are no numbers: let a layer look them up before, as an "
                  "embedding does");
    static_assert(F != layer_of_several,
                  "Graph: a layer reads one edge: join several before it, by Add, Multiply, Concatenate or a join of your own");
    static_assert(F != join_of_one, "Graph: a join reads at least two edges");
    static_assert(F != join_of_two,
                  "Graph: this join, such as Multiply, is of two edges: join two of them, and what comes out with the next");
    static_assert(F != too_many_edges, "Graph: a join reads at most eight edges");
    static_assert(
        F != join_refuses,
        "Graph: this join refuses the shapes of its edges: Add and Multiply take equal ones, Concatenate what differs in "
        "the last extent alone, others say it in their describe()");
  };
};

template <class L, class In> struct GraphFaults {
  static constexpr auto plan = L::plan(In::extents);
  /// The edge to blame: the one that is read, or the one that the item writes; else the graph.
  template <class Item, int Read> static constexpr auto name() {
    if constexpr (plan.fault == nn::GraphFault::unknown_edge || plan.fault == nn::GraphFault::read_before_written ||
                  plan.fault == nn::GraphFault::output_twice || plan.fault == nn::GraphFault::output_of_tokens)
      return std::type_identity<TypeAt<typename Item::reads, Read>>{};
    else if constexpr (plan.fault == nn::GraphFault::not_an_item || std::is_void_v<typename Item::writes>)
      return std::type_identity<L>{};
    else return std::type_identity<typename Item::writes>{};
  }
  static constexpr int first_faulty() {
    for (int i = 0; i < L::size; ++i)
      if (plan.nodes[static_cast<std::size_t>(i)].needs.fault != nn::Fault::none) return i;
    return -1;
  }
  template <int... Path> static constexpr auto first() {
    if constexpr (!L::sound) {
      return static_cast<typename edge<L>::template of_graph<plan.fault>*>(nullptr);
    } else if constexpr (plan.total.fault == nn::Fault::graph) {
      using Name = typename decltype(name<TypeAt<typename L::graph_items, plan.faulty>, plan.faulty_read>())::type;
      return static_cast<typename edge<Name>::template of_graph<plan.fault>*>(nullptr);
    } else {
      constexpr int i = first_faulty();
      if constexpr (i < 0) return static_cast<layers_of<L>*>(nullptr);
      else
        return first_fault<typename TypeAt<typename L::graph_items, i>::layer,
                           typename nn::Node<L, In>::template ShapeAt<plan.items[i].reads[0]>, Path..., i>();
    }
  }
};

}  // namespace check

}  // namespace skein::inline SKEIN_ABI
