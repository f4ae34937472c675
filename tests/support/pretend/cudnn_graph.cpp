// SPDX-License-Identifier: Apache-2.0
// The graph interface of the pretend cuDNN: descriptors are maps of attributes, checked when they are finalised; a graph is one
// convolution, a bias or none, a ReLU or none. The heuristic names engines that must not be taken (random order of sums, tensor
// cores) before one that may; a second one does not compile. As on a GPU, doubles, and images that are not channels last, have
// none.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "cudnn.hpp"

using namespace pretend;

namespace {

struct Attribute {
  cudnnBackendAttributeType_t type{};
  std::int64_t count = 0;
  std::vector<unsigned char> bytes;
};
/// All that a run needs: made when a plan is finalised, so that the descriptors may go.
struct Program {
  Tensor x, filter, y, bias;
  std::int64_t x_id = 0, filter_id = 0, y_id = 0, bias_id = -1;
  Window window;
  bool has_relu = false;
};
struct Node {
  cudnnBackendDescriptorType_t type{};
  std::map<int, Attribute> attributes;
  bool final = false;
  int engine = 0;     // of engines and their configurations
  Program program{};  // of plans
};
Node& node(cudnnBackendDescriptor_t d) { return *static_cast<Node*>(d); }

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    default:
      return 4;  // enumerations and floats
  }
}
template <class T> T value(const Node& n, int name, T otherwise = {}) {
  const auto found = n.attributes.find(name);
  if (found != n.attributes.end()) std::memcpy(&otherwise, found->second.bytes.data(), sizeof(T));
  return otherwise;
}
template <class T> std::vector<T> values(const Node& n, int name) {
  const auto found = n.attributes.find(name);
  if (found == n.attributes.end()) return {};
  std::vector<T> all(static_cast<std::size_t>(found->second.count));
  std::memcpy(all.data(), found->second.bytes.data(), all.size() * sizeof(T));
  return all;
}
bool has(const Node& n, std::initializer_list<int> names) {
  return std::all_of(names.begin(), names.end(), [&](int name) { return n.attributes.contains(name); });
}
const Node& child(const Node& n, int name) { return node(value<cudnnBackendDescriptor_t>(n, name)); }

Tensor tensor(const Node& n) {
  Tensor t;
  t.type = value<cudnnDataType_t>(n, CUDNN_ATTR_TENSOR_DATA_TYPE);
  const auto extent = values<std::int64_t>(n, CUDNN_ATTR_TENSOR_DIMENSIONS),
             stride = values<std::int64_t>(n, CUDNN_ATTR_TENSOR_STRIDES);
  std::copy_n(extent.begin(), 4, t.extent);
  std::copy_n(stride.begin(), 4, t.stride);
  return t;
}
std::int64_t id(const Node& n) { return value<std::int64_t>(n, CUDNN_ATTR_TENSOR_UNIQUE_ID); }
bool virtually(const Node& n) { return value<bool>(n, CUDNN_ATTR_TENSOR_IS_VIRTUAL); }

/// What the graph calculates; a sentence where this cuDNN cannot.
std::string read(const Node& graph, Program& p) {
  const auto operations = values<cudnnBackendDescriptor_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations.empty() || node(operations[0]).type != CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    return "a graph begins with a convolution here";
  const Node& first = node(operations[0]);
  const Node& window = child(first, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  const Node &x = child(first, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
             &filter = child(first, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  const Node* result = &child(first, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  p.x = tensor(x), p.filter = tensor(filter), p.x_id = id(x), p.filter_id = id(filter);
  const auto padding = values<std::int64_t>(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
             stride = values<std::int64_t>(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
             dilation = values<std::int64_t>(window, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (padding != values<std::int64_t>(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)) return "paddings of two sizes";
  for (int d = 0; d < 2; ++d)
    p.window.padding[d] = padding[static_cast<std::size_t>(d)], p.window.stride[d] = stride[static_cast<std::size_t>(d)],
    p.window.dilation[d] = dilation[static_cast<std::size_t>(d)];
  p.window.groups = p.x.extent[1] / std::max<std::int64_t>(1, p.filter.extent[1]);
  if (!fits(p.x, p.filter, tensor(*result), p.window)) return "the extents of the convolution do not fit each other";
  for (std::size_t i = 1; i < operations.size(); ++i) {
    const Node& o = node(operations[i]);
    if (o.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) return "only pointwise operations behind a convolution here";
    if (&child(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) != result) return "the operations are not a chain";
    if (!virtually(*result)) return "a tensor between operations is not virtual";
    const auto mode =
        value<cudnnPointwiseMode_t>(child(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), CUDNN_ATTR_POINTWISE_MODE);
    if (mode == CUDNN_POINTWISE_ADD && i == 1) {
      const Node& b = child(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
      p.bias = tensor(b), p.bias_id = id(b);
      const std::int64_t extent[] = {1, p.filter.extent[0], 1, 1};
      if (std::memcmp(p.bias.extent, extent, sizeof extent) != 0) return "a bias is (1, channels, 1, 1)";
    } else if (mode == CUDNN_POINTWISE_RELU_FWD && i + 1 == operations.size()) {
      p.has_relu = true;
    } else {
      return "only a bias and a ReLU behind a convolution here";
    }
    result = &child(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  }
  if (virtually(*result)) return "the result is virtual";
  p.y = tensor(*result), p.y_id = id(*result);
  if (!p.x.channels_last() || !p.filter.channels_last() || !p.y.channels_last()) return "only channels last here";
  if (p.x.type == CUDNN_DATA_DOUBLE || p.x.type != p.filter.type || p.x.type != p.y.type)
    return "these data types have no engine";
  return {};
}
constexpr int engines = 4;  // random, tensor cores, does not compile, good
std::size_t scratch_of(const Program& p) { return p.filter.bytes() + 16; }

cudnnStatus_t wants(const Node& n, std::initializer_list<int> names) {
  return has(n, names) ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_BAD_PARAM, "an attribute is missing");
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* d) {
  *d = new Node;
  node(*d).type = type;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete &node(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* from) {
  Node& n = node(d);
  if (n.final) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is finalised already");
  if (!from || count <= 0) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no values");
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (int64_t i = 0; i < count; ++i)
      if (!node(static_cast<const cudnnBackendDescriptor_t*>(from)[i]).final)
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a part is not finalised");
  const auto* bytes = static_cast<const unsigned char*>(from);
  n.attributes[name] = {type, count, {bytes, bytes + static_cast<std::size_t>(count) * size_of(type)}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  Node& n = node(d);
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  Program program;
  switch (n.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: {
      status = wants(n, {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS,
                         CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT});
      if (status == CUDNN_STATUS_SUCCESS && (values<std::int64_t>(n, CUDNN_ATTR_TENSOR_DIMENSIONS).size() != 4 ||
                                             values<std::int64_t>(n, CUDNN_ATTR_TENSOR_STRIDES).size() != 4))
        status = refuse(CUDNN_STATUS_NOT_SUPPORTED, "only four extents here");
      if (status == CUDNN_STATUS_SUCCESS && value<cudnnDataType_t>(n, CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_INT8)
        status = refuse(CUDNN_STATUS_NOT_SUPPORTED, "no integers here");
      break;
    }
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      status = wants(n, {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                         CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
                         CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES});
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      status = wants(n, {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA});
      break;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      status = wants(n, {CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC});
      break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
      status = wants(n, {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                         CUDNN_ATTR_OPERATION_POINTWISE_YDESC});
      if (status == CUDNN_STATUS_SUCCESS && value<cudnnPointwiseMode_t>(child(n, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                                                                        CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD)
        status = wants(n, {CUDNN_ATTR_OPERATION_POINTWISE_BDESC});
      break;
    }
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: {
      status = wants(n, {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_HANDLE});
      if (status == CUDNN_STATUS_SUCCESS)
        if (const std::string fault = read(n, program); !fault.empty())
          status = refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, fault);
      break;
    }
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      status = wants(n, {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_MODE});
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      status = wants(n, {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG});
      if (status != CUDNN_STATUS_SUCCESS) break;
      const Node& configuration = child(n, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      if (configuration.engine == 2)
        return refuse(CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, "this engine does not compile");
      read(child(configuration, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), program);
      n.program = program;
      break;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: {
      status = wants(n, {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS});
      if (values<void*>(n, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size() !=
          values<std::int64_t>(n, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size())
        status = refuse(CUDNN_STATUS_BAD_PARAM, "as many pointers as names");
      break;
    }
    default:
      status = refuse(CUDNN_STATUS_NOT_SUPPORTED, "this double of cuDNN does not know the descriptor");
  }
  n.final = status == CUDNN_STATUS_SUCCESS;
  return status;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t asked, int64_t* count, void* to) {
  Node& n = node(d);
  if (!n.final) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the descriptor is not finalised");
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const bool some = value<cudnnBackendHeurMode_t>(n, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A;
      if (asked == 0) return *count = some ? engines : 0, CUDNN_STATUS_SUCCESS;
      *count = std::min<std::int64_t>(asked, some ? engines : 0);
      for (int i = 0; i < *count; ++i) {
        Node& configuration = node(static_cast<cudnnBackendDescriptor_t*>(to)[i]);
        configuration.engine = i;
        configuration.attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = n.attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH];
        configuration.final = true;
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Node& engine = node(*static_cast<cudnnBackendDescriptor_t*>(to));
      engine.engine = n.engine;
      engine.final = true;
      return *count = 1, CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      auto* notes = static_cast<cudnnBackendNumericalNote_t*>(to);
      *count = n.engine < 2 && asked > 0;
      if (*count) notes[0] = n.engine == 0 ? CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC : CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      *static_cast<std::int64_t*>(to) = static_cast<std::int64_t>(scratch_of(n.program));
      return *count = 1, CUDNN_STATUS_SUCCESS;
    }
    default:
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "this double of cuDNN does not know the attribute");
  }
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const char* name = "cudnnBackendExecute";
  if (!node(plan).final || !node(pack).final)
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "plan or pointers are not finalised");
  const Program p = node(plan).program;
  const auto pointers = values<void*>(node(pack), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto ids = values<std::int64_t>(node(pack), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointer = [&](std::int64_t wanted) -> void* {
    const auto found = std::find(ids.begin(), ids.end(), wanted);
    return found == ids.end() ? nullptr : pointers[static_cast<std::size_t>(found - ids.begin())];
  };
  void *x = pointer(p.x_id), *filter = pointer(p.filter_id), *y = pointer(p.y_id),
       *bias = p.bias_id >= 0 ? pointer(p.bias_id) : nullptr;
  void* scratch = value<void*>(node(pack), CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  for (const void* at : {x, filter, y, bias})
    if (reinterpret_cast<std::uintptr_t>(at) % 16 != 0)
      return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "a pointer is not aligned as its tensor says");
  if (!reaches(handle, x, p.x.bytes(), name) || !reaches(handle, filter, p.filter.bytes(), name) ||
      !reaches(handle, y, p.y.bytes(), name) || (p.bias_id >= 0 && !reaches(handle, bias, p.bias.bytes(), name)) ||
      !reaches(handle, scratch, scratch_of(p), name))
    return CUDNN_STATUS_EXECUTION_FAILED;
  return launch(handle, name, [=] {
    std::memset(scratch, 0xFF, scratch_of(p));
    std::vector<double> sums(static_cast<std::size_t>(p.y.count()));
    each_product(p.x, p.filter, p.y, p.window, [&](auto i, auto j, auto k) {
      sums[static_cast<std::size_t>(k)] += load(p.x.type, x, i) * load(p.filter.type, filter, j);
    });
    for (std::int64_t i = 0; i < p.y.count(); ++i) {  // channels last
      double v = sums[static_cast<std::size_t>(i)] + (bias ? load(p.bias.type, bias, i % p.y.extent[1]) : 0);
      if (p.has_relu && v < 0) v = 0;
      store(p.y.type, y, i, v);
    }
  });
}

}  // extern "C"
