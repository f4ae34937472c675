// SPDX-License-Identifier: Apache-2.0
// What a wrong network gets to read: one sentence, one error. The first fault is found by value over the whole network; only
// then is a type named whose static_assert says it, so that gcc, clang and nvcc print the sentence with the types beside it.
#pragma once
#include "check_options.hpp"
#include "concat.hpp"
#include "repeat.hpp"
#include "residual.hpp"
#include "sequential.hpp"

namespace skein::inline SKEIN_ABI {

namespace check {

// Each condition is a variable template over types: clang puts it on the error line, gcc in the note below.
template <class L, class In> inline constexpr nn::Fault fault_of = nn::analyze<L>(In::extents).fault;
template <class L, class In> inline constexpr bool keeps_the_count = fault_of<L, In> != nn::Fault::reshape_count;
template <class L, class In> inline constexpr bool slices_within = fault_of<L, In> != nn::Fault::slice_outside;
template <class L, class In> inline constexpr bool gets_a_flat_shape =
    fault_of<L, In> != nn::Fault::wants_flat || In::extents.rank == 2;
template <class L, class In> inline constexpr bool gets_no_sequence =
    fault_of<L, In> != nn::Fault::wants_flat || In::extents.rank != 2;
template <class L, class In> inline constexpr bool gets_numbers = fault_of<L, In> != nn::Fault::wants_numbers;
template <class L, class In> inline constexpr bool gets_tokens = fault_of<L, In> != nn::Fault::wants_tokens;
template <class L, class In> inline constexpr bool gets_an_image = fault_of<L, In> != nn::Fault::wants_image;
template <class L, class In> inline constexpr bool gets_a_sequence = fault_of<L, In> != nn::Fault::wants_sequence;
template <class L, class In> inline constexpr bool gets_a_volume = fault_of<L, In> != nn::Fault::wants_volume;
template <class L, class In> inline constexpr bool leaves_an_output = fault_of<L, In> != nn::Fault::no_output;
template <class L, class In> inline constexpr bool goes_on_where_it_ended = fault_of<L, In> != nn::Fault::state_of_reversed;
template <class L, class In> inline constexpr bool kernel_fits_into = fault_of<L, In> != nn::Fault::window_too_large;
template <class L, class In> inline constexpr bool groups_divide_the_channels =
    fault_of<L, In> != nn::Fault::groups_do_not_divide;
template <class L, class In> inline constexpr bool accepts = fault_of<L, In> != nn::Fault::own;
template <class Body, class Shortcut> inline constexpr bool same_shape = std::same_as<Body, Shortcut>;
template <class L> inline constexpr bool has_something_of_a_layer =
    nn::Container<L> || nn::HasDescribe<L> || nn::HasSpec<L> || nn::HasForward<L> || nn::HasBackward<L>;
template <class L> inline constexpr bool has_describe =
    !has_something_of_a_layer<L> || nn::Container<L> || nn::HasDescribe<L> || nn::HasSpec<L>;
template <class L> inline constexpr bool has_forward =
    !has_something_of_a_layer<L> || nn::Container<L> || nn::HasSpec<L> || nn::HasForward<L>;
template <class L> inline constexpr bool has_backward =
    !has_something_of_a_layer<L> || nn::Container<L> || nn::HasSpec<L> || nn::HasBackward<L>;
template <class L> inline constexpr bool has_expression_forward = !nn::HasSpec<L> || nn::HasExpressionForward<L>;
template <class L> inline constexpr bool has_expression_backward = !nn::HasSpec<L> || nn::HasExpressionBackward<L>;
template <class L, class In> inline constexpr bool has_room_for_its_parameters =
    fault_of<L, In> != nn::Fault::too_many_parameters;
template <class L, class In> inline constexpr bool parameters_have_names = fault_of<L, In> != nn::Fault::parameter_names;
template <class L, class In> inline constexpr bool describe_is_constexpr = fault_of<L, In> != nn::Fault::not_constexpr;
template <class L, class In> inline constexpr bool gives_an_output = fault_of<L, In> != nn::Fault::describes_no_output;
/// L has a fault that no sentence of layer<L>::gets<In> but the last one says.
template <class L, class In> constexpr bool is_silent() {
  return fault_of<L, In> != nn::Fault::none && nn::option_fault_of<L>() == nn::Fault::none && has_something_of_a_layer<L> &&
         has_describe<L> && has_forward<L> && has_backward<L> && nn::says_what_it_packs<L> && has_expression_forward<L> &&
         has_expression_backward<L> && describe_is_constexpr<L, In> && gives_an_output<L, In> &&
         has_room_for_its_parameters<L, In> && parameters_have_names<L, In> && gets_numbers<L, In> && gets_tokens<L, In> &&
         gets_a_flat_shape<L, In> && gets_no_sequence<L, In> && gets_an_image<L, In> && gets_a_sequence<L, In> &&
         gets_a_volume<L, In> && leaves_an_output<L, In> && goes_on_where_it_ended<L, In> && kernel_fits_into<L, In> &&
         keeps_the_count<L, In> && slices_within<L, In> && groups_divide_the_channels<L, In> && accepts<L, In>;
}
template <class L, class In> inline constexpr bool has_a_sentence = !is_silent<L, In>();

// The names read as a sentence in the compilers' trails: layer<Linear<120>, 3>::gets<Shape<12, 12, 6>>.
template <class Layer, int... Path> struct layer {
  template <class Input> struct gets {
    static_assert(
        has_something_of_a_layer<Layer>,
        "this type is no layer: it has neither describe() nor forward() nor backward(), or they are private, or not static, or "
        "describe() does not take an sk::Edge: a layer is a type without values, whose numbers are template arguments or "
        "parameters. If it is a network, the error "
        "above is within its layers: an option has its name, as in Conv2d<16, Kernel<3>> and Dropout<Rate<1, 10>>; "
        "Linear<16> has its outputs alone, since its inputs come from the layer before; a layer without options is "
        "written BatchNorm<>");
    static_assert(has_describe<Layer>, "this layer lacks: static constexpr skein::LayerSpec describe(skein::Edge in)");
    static_assert(has_forward<Layer>, "this layer lacks: template <class In, class Frame> static void forward(Frame& f)");
    static_assert(has_backward<Layer>, "this layer lacks: template <class In, class Frame> static void backward(Frame& f)");
    static_assert(nn::says_what_it_packs<Layer>,
                  "a layer with pack_weights() says how much its copies take: give it template <class Device> static constexpr "
                  "sk::KernelNeeds needs(sk::Extents in)");
    static_assert(has_expression_forward<Layer>, "this layer lacks: static void forward(auto& f)");
    static_assert(has_expression_backward<Layer>, "this layer lacks: static void backward(auto& f)");
    static_assert(describe_is_constexpr<Layer, Input>,
                  "this layer's describe() gives no constant: it is static constexpr, and for an input that it refuses it "
                  "gives .accepts = false in place of throwing");
    static_assert(gives_an_output<Layer, Input>,
                  "this layer's describe() gives no .output: as in {.output = in} for one of its input's shape");
    static_assert(has_room_for_its_parameters<Layer, Input>, "a layer has at most eight parameters");
    static_assert(parameters_have_names<Layer, Input>,
                  "each parameter of a layer has a name of its own, by which files, groups and f.parameter(\"...\"_p) find it");
    static_assert(gets_numbers<Layer, Input>,
                  "the input is tokens and this layer calculates with numbers: let a layer look them up before, as an embedding "
                  "does");
    static_assert(gets_tokens<Layer, Input>, "this layer takes tokens: it stands first in a network whose input is Tokens<T>");
    static_assert(gets_a_flat_shape<Layer, Input>, "this layer takes a flat shape: put Flatten before it");
    static_assert(gets_no_sequence<Layer, Input>,
                  "this layer takes a flat shape: put Flatten before it; behind a recurrent layer give that one LastState, or "
                  "write EachPosition<Linear<...>>");
    static_assert(gets_an_image<Layer, Input>,
                  "this layer takes an image, Shape<height, width, channels>: is a Flatten too early?");
    static_assert(gets_a_sequence<Layer, Input>,
                  "this layer takes a sequence, Shape<steps, values>: a Reshape<steps, values> before it makes one");
    static_assert(gets_a_volume<Layer, Input>, "this layer takes a volume, Shape<depth, height, width, channels>");
    static_assert(leaves_an_output<Layer, Input>,
                  "the Padding of this transposed convolution leaves no output: use less padding or a larger kernel");
    static_assert(goes_on_where_it_ended<Layer, Input>,
                  "Stateful: a sequence that is read from its end does not go on in the next batch: leave Reversed or Stateful "
                  "out");
    static_assert(kernel_fits_into<Layer, Input>,
                  "the kernel is larger than its padded input: use a smaller kernel or more padding; an image is Shape<height, "
                  "width, channels>, as in Shape<28, 28, 1>");
    static_assert(keeps_the_count<Layer, Input>, "Reshape<...>: the extents must multiply to as many values as the input has");
    static_assert(slices_within<Layer, Input>, "Slice<Begin, End>: End is beyond the last extent of the input");
    static_assert(
        groups_divide_the_channels<Layer, Input>,
        "the number of groups (Groups<G>, GroupNorm<G>) must divide the input channels, and the filters of a convolution");
    static_assert(accepts<Layer, Input>, "this layer refuses its input shape: see its describe()");
    static_assert(has_a_sentence<Layer, Input>,
                  "this layer has a fault that is none of a layer: its describe() gives .fault = Fault::own for a shape that it "
                  "refuses");
  };
};
template <class Body, class Shortcut> struct residual_branches {
  template <class BodyOutput, class ShortcutOutput> struct give {
    static_assert(same_shape<BodyOutput, ShortcutOutput>,
                  "Residual: body and shortcut give different shapes: give the shortcut the stride and the channels of the body");
  };
};
template <class... Branches> struct concat_branches {
  template <class Input> struct get {
    static_assert(
        fault_of<nn::Concat<Branches...>, Input> != nn::Fault::concat_differs,
        "Concat: the branches give different shapes: all extents but the last must be equal; of recurrent layers all or "
        "none have LastState");
  };
};
template <class Repeat> struct repeat { static_assert(std::is_void_v<Repeat>, "Repeat<N, Block>: N must be at least 1"); };
template <class Recompute> struct recomputed_state {
  static_assert(std::is_void_v<Recompute>,
                "Recompute: a layer that carries its state from batch to batch has it where the block is made again: leave that "
                "layer out of the block");
};
template <class Block> struct repeated_block {
  template <class Input, class Output> struct turns {
    static_assert(same_shape<Input, Output>, "Repeat: the block must return the shape that it gets");
    static_assert(!same_shape<Input, Output>,
                  "Repeat: this block hands its input on as it is, which changes nothing however often: leave the Repeat out");
  };
};
template <class Network> struct layers_of {
  static_assert(std::is_void_v<Network>, "a layer that takes tokens stands first in a network, behind the input Tokens<T>");
};
/// The last word, of a part with a fault that no sentence of its own says: a faulty plan is never executed.
template <class Part> struct refused {
  static_assert(std::is_void_v<Part>, "this part of the network has a fault of which the library has no sentence: report it");
};
struct fits {};  // no fault

template <class L, class In> struct OutputOf {  // integers, not a reference template parameter: nvcc 13.0 rejects that one
  static constexpr Extents o = nn::analyze<L>(In::extents).output;
  using type = typename MakeShape<o.rank, o.e[0], o.e[1], o.e[2], o.e[3]>::type;
};
template <class L, class In> using Output = typename OutputOf<L, In>::type;

template <class L, class In> constexpr int first_faulty_child() {
  int n = 0, found = -1;
  Extents x = In::extents;
  auto one = [&]<class Child>(List<Child>*) {
    const nn::MemoryRequirements s = nn::analyze<Child>(x);
    if (found < 0 && s.fault != nn::Fault::none) found = n;
    x = s.output;
    ++n;
  };
  [&]<class... Ls>(List<Ls...>*) {
    const int each[] = {(one(static_cast<List<Ls>*>(nullptr)), 0)...};
    (void)each;
  }(static_cast<typename L::children*>(nullptr));
  return found;
}
template <class L, class In> constexpr int first_faulty_branch() {
  int n = 0, found = -1;
  auto one = [&](nn::Fault f) {
    if (found < 0 && f != nn::Fault::none) found = n;
    ++n;
  };
  [&]<class... Ls>(List<Ls...>*) {
    const int each[] = {(one(fault_of<Ls, In>), 0)...};
    (void)each;
  }(static_cast<typename L::branches*>(nullptr));
  return found;
}
template <class L> struct ConcatCheck;
template <class... Ls> struct ConcatCheck<List<Ls...>> { using type = concat_branches<Ls...>; };

template <class L, class In> struct GraphFaults;  // nn/graph/check.hpp

/// A pointer to the type that explains the first fault of L at In; to `fits` where there is none.
template <class L, class In, int... Path> constexpr auto first_fault() {
  if constexpr (fault_of<L, In> == nn::Fault::none) {
    return static_cast<fits*>(nullptr);
  } else if constexpr (nn::SequentialLike<L>) {
    constexpr int i = first_faulty_child<L, In>();
    if constexpr (i < 0) return static_cast<layers_of<L>*>(nullptr);
    else return first_fault<TypeAt<typename L::children, i>, typename nn::Node<L, In>::template ShapeAt<i>, Path..., i>();
  } else if constexpr (nn::ResidualLike<L>) {
    if constexpr (fault_of<typename L::body, In> != nn::Fault::none) return first_fault<typename L::body, In, Path..., 0>();
    else if constexpr (fault_of<typename L::shortcut, In> != nn::Fault::none)
      return first_fault<typename L::shortcut, In, Path..., 1>();
    else if constexpr (same_shape<Output<typename L::body, In>, Output<typename L::shortcut, In>>)
      return static_cast<refused<L>*>(nullptr);
    else
      return static_cast<typename residual_branches<typename L::body, typename L::shortcut>::template give<
          Output<typename L::body, In>, Output<typename L::shortcut, In>>*>(nullptr);
  } else if constexpr (nn::ConcatLike<L>) {
    constexpr int i = first_faulty_branch<L, In>();
    if constexpr (i >= 0) return first_fault<TypeAt<typename L::branches, i>, In, Path..., i>();
    else if constexpr (fault_of<L, In> != nn::Fault::concat_differs) return static_cast<refused<L>*>(nullptr);
    else return static_cast<typename ConcatCheck<typename L::branches>::type::template get<In>*>(nullptr);
  } else if constexpr (nn::RepeatLike<L>) {
    if constexpr (fault_of<L, In> == nn::Fault::repeats_nothing) return static_cast<repeat<L>*>(nullptr);
    else if constexpr (fault_of<typename L::block, In> != nn::Fault::none)
      return first_fault<typename L::block, In, Path..., 0>();
    else if constexpr (fault_of<L, In> != nn::Fault::repeat_changes_shape) return static_cast<refused<L>*>(nullptr);
    else
      return static_cast<typename repeated_block<typename L::block>::template turns<In, Output<typename L::block, In>>*>(nullptr);
  } else if constexpr (nn::RecomputeLike<L>) {
    if constexpr (fault_of<typename L::recomputed_block, In> != nn::Fault::none)
      return first_fault<typename L::recomputed_block, In, Path...>();
    else return static_cast<recomputed_state<L>*>(nullptr);
  } else if constexpr (nn::GraphLike<L>) {
    return GraphFaults<L, In>::template first<Path...>();
  } else if constexpr (nn::option_fault_of<L>() != nn::Fault::none) {
    return fault_of_options<L, Path...>();
  } else {
    return static_cast<typename layer<L, Path...>::template gets<In>*>(nullptr);
  }
}
template <class Network, class In> using FirstFault = std::remove_pointer_t<decltype(first_fault<Network, In>())>;

}  // namespace check

/// The ladder for one layer at one input shape: implementers call it in their own tests. A layer of expressions is compiled for
/// the host's floats, so that what its forward and backward refuse is seen here.
template <class L, class In> consteval void assert_layer() {
  if constexpr (nn::option_fault_of<L>() != nn::Fault::none) static_assert(sizeof(check::FaultOfOptions<L>) > 0);
  static_assert(sizeof(typename check::layer<L>::template gets<In>) > 0);
  if constexpr (nn::HasSpec<L> && nn::has_forward<L> && nn::has_backward<L>) {
    constexpr auto* bodies = &nn::compile_bodies<L, In, nn::detail::ProbeFrame>;  // compiled where it is named
    (void)bodies;
  }
}

/// The ladder for a whole network: the first fault only.
template <class Network, class In> consteval void assert_network() { static_assert(sizeof(check::FirstFault<Network, In>) > 0); }

}  // namespace skein::inline SKEIN_ABI
