// SPDX-License-Identifier: Apache-2.0
// Matrix products of row-major arrays by cuBLASLt, with a bias, an activation or the sums of a bias gradient in the same kernel.
// What the library wants for a product (descriptors, the heuristic's algorithm, workspace) is a plan: made once for its sizes,
// types and alignments, then only executed. One handle a thread and device.
//
// cuBLASLt thinks in columns. A row-major (m, n) array is a column-major (n, m) one, so D = A B is computed as D' = B' A': the
// operands change places, nothing is transposed, and a bias along the rows of D' lies along the columns of D, where it belongs.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "../../core/hash.hpp"
#include "../../device/cuda/arguments.hpp"
#include "../../device/cuda/choices.hpp"
#include "../../device/cuda/workspace.hpp"
#include "../transpose.hpp"
#include "cublas.hpp"

namespace skein::inline SKEIN_ABI::ops::cublas {

/// What is done to D in the product's own kernel. `sums` also stores, for each column of B, the sum of its values: the gradient
/// of a bias where B is that of the output. `aux` keeps what went into the activation.
enum class Epilogue : int {
  none = CUBLASLT_EPILOGUE_DEFAULT,
  bias = CUBLASLT_EPILOGUE_BIAS,
  relu = CUBLASLT_EPILOGUE_RELU,
  relu_bias = CUBLASLT_EPILOGUE_RELU_BIAS,
  gelu = CUBLASLT_EPILOGUE_GELU,
  gelu_bias = CUBLASLT_EPILOGUE_GELU_BIAS,
  gelu_aux = CUBLASLT_EPILOGUE_GELU_AUX,
  gelu_aux_bias = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
  sums = CUBLASLT_EPILOGUE_BGRADA,  // the library's A is our B
};

/// D = alpha op(A) op(B) + beta D, all row-major: op(A) is (m, k), op(B) is (k, n), D is (m, n); rows lie lda, ldb, ldd scalars
/// apart as they are stored. With beta 0, D is not read. Pointers are the device's; null stands for one that is 16-byte aligned
/// (prepare).
struct Product {
  /// Pointers count as aligned to so many bytes at most: 256 lets all algorithms in; whoever plans with null pointers takes 16
  /// for the call too, so that it finds its plan.
  long most_alignment = 256;
  Transpose ta = Transpose::no, tb = Transpose::no;
  long m = 0, n = 0, k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  long lda = 0, ldb = 0, ldd = 0;
  cudaDataType_t type = CUDA_R_32F;    ///< of A and B
  cudaDataType_t result = CUDA_R_32F;  ///< of D, and of bias, sums and aux
  bool tf32 = false;                   ///< floats may be rounded to TF32 on their way into tensor cores
  double alpha = 1, beta = 0;
  Epilogue epilogue = Epilogue::none;
  void* vector = nullptr;  ///< n values: the bias, or where the sums go
  void* aux = nullptr;     ///< (m, ldd), see Epilogue

  /// For people: "of (128, 84) x (84, 10), float, with bias, rows 96, 16, 16 apart".
  std::string text() const;
};

namespace detail {
/// What decides how a product runs: plain integers.
struct Key {
  std::array<long, 11> part{};
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    Fnv1a hash;
    for (const long v : key.part) hash.add(static_cast<std::uint64_t>(v));
    return hash.value();
  }
};
/// The largest power of two, up to `most`, that divides the address; 16 for null.
inline long alignment(const void* p, long most = 256) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (!p) return std::min(most, 16L);
  return std::min(most, address % 256 == 0 ? 256L : static_cast<long>(address & (~address + 1)));
}
inline Key key_of(const Product& p) {
  long aligned = 0;
  for (const void* at :
       {p.a, p.b, const_cast<const void*>(p.d), const_cast<const void*>(p.vector), const_cast<const void*>(p.aux)})
    aligned = aligned << 4 | std::countr_zero(static_cast<unsigned long>(alignment(at, p.most_alignment)));
  return {{p.m, p.n, p.k, p.lda, p.ldb, p.ldd, static_cast<long>(p.type), static_cast<long>(p.result),
           (p.ta == Transpose::yes) | (p.tb == Transpose::yes) << 1 | p.tf32 << 2, static_cast<long>(p.epilogue), aligned}};
}

using Layout = Descriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

/// How one product runs, on one thread and device.
struct Plan {
  Descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation;
  Layout a, b, d;  // the library's: a is our B
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace = 0;
  void* vector = nullptr;  // what the descriptor holds now
  void* aux = nullptr;
  bool usable = false;  // false: the library has no kernel for it

  template <class T> void set(cublasLtMatmulDescAttributes_t which, const T& value) {
    check(cublasLtMatmulDescSetAttribute(operation.raw, which, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
};

/// One thread's handle of one device, with its plans.
struct Library {
  cublasLtHandle_t handle = nullptr;
  std::size_t most_workspace = 0;
  std::unordered_map<Key, Plan, KeyHash> plans;

  explicit Library(Cuda device) {
    check(cublasLtCreate(&handle), "cublasLtCreate");
    int major = 0;
    skein::cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.ordinal),
                       "cudaDeviceGetAttribute");
    most_workspace = std::size_t(major >= 9 ? 32 : 8) << 20;  // Hopper's kernels want 32 MiB (cuBLAS's documentation)
  }
  ~Library() {
    plans.clear();
    (void)cublasLtDestroy(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Plan& plan(const Product& p) {
    const Key key = key_of(p);
    if (const auto found = plans.find(key); found != plans.end()) return found->second;
    return plans.emplace(key, make(p)).first->second;
  }
  Plan make(const Product& p) const;
};

/// The calling thread's, for the current device.
inline Library& library() {
  (void)skein::cuda::detail::thread_streams();  // made before, gone after: a handle knows its stream
  thread_local std::array<std::unique_ptr<Library>, skein::cuda::detail::most_devices> all;
  const Cuda device = skein::cuda::current_device();
  std::unique_ptr<Library>& mine = all[skein::cuda::detail::index_of(device)];
  if (!mine) mine = std::make_unique<Library>(device);
  return *mine;
}

inline cublasComputeType_t compute_type(const Product& p) {
  if (p.type == CUDA_R_64F) return CUBLAS_COMPUTE_64F;
  return p.type == CUDA_R_32F && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/// A stored row-major (rows, columns) array as the library sees it.
inline void describe(Layout& to, cudaDataType_t type, long rows, long columns, long pitch, const Product& p) {
  const auto across = static_cast<std::uint64_t>(columns), down = static_cast<std::uint64_t>(rows);
  check(cublasLtMatrixLayoutCreate(&to.raw, type, across, down, pitch), "cublasLtMatrixLayoutCreate", [&] { return p.text(); });
}

/// An epilogue that is refused may be one that the library lacks, or a mistake of ours: it is shown, with the status.
inline void note_refusal(const Product& p, cublasStatus_t status) {
  skein::cuda::choices().detour("cuBLASLt's product " + p.text() + ": " +
                                (status == CUBLAS_STATUS_SUCCESS ? "no algorithm" : cublasLtGetStatusName(status)) +
                                ", a kernel behind the product does that");
}

/// What is multiplied, and what happens to the sums; no algorithm yet.
inline void describe(Plan& plan, const Product& p) {
  const bool ta = p.ta == Transpose::yes, tb = p.tb == Transpose::yes;
  describe(plan.a, p.type, tb ? p.n : p.k, tb ? p.k : p.n, p.ldb, p);
  describe(plan.b, p.type, ta ? p.k : p.m, ta ? p.m : p.k, p.lda, p);
  describe(plan.d, p.result, p.m, p.n, p.ldd, p);
  const cudaDataType_t factors = p.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
  check(cublasLtMatmulDescCreate(&plan.operation.raw, compute_type(p), factors), "cublasLtMatmulDescCreate",
        [&] { return p.text(); });
  plan.set(CUBLASLT_MATMUL_DESC_TRANSA, tb ? CUBLAS_OP_T : CUBLAS_OP_N);
  plan.set(CUBLASLT_MATMUL_DESC_TRANSB, ta ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (p.epilogue == Epilogue::none) return;
  plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<cublasLtEpilogue_t>(p.epilogue));
  plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, plan.vector = p.vector);  // the heuristic looks at its alignment
  if (p.epilogue == Epilogue::gelu_aux || p.epilogue == Epilogue::gelu_aux_bias) {
    plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, plan.aux = p.aux);
    plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, static_cast<std::int64_t>(p.ldd));
  }
}

using Preference = Descriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
/// Which algorithms are asked for: in so much memory, for operands that lie as these.
inline Preference preference_of(const Product& p, std::size_t workspace) {
  Preference preference;
  check(cublasLtMatmulPreferenceCreate(&preference.raw), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference.raw, which, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  const auto alignment_of = [&](const void* at) { return static_cast<std::uint32_t>(alignment(at, p.most_alignment)); };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.d));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.d));
  return preference;
}

/// May the plan run this algorithm? The library may name one that it then refuses for these operands.
inline bool usable(cublasLtHandle_t handle, const Plan& plan, cublasLtMatmulHeuristicResult_t& one) {
  cublasLtMatmulHeuristicResult_t checked{};
  if (one.state != CUBLAS_STATUS_SUCCESS ||
      cublasLtMatmulAlgoCheck(handle, plan.operation.raw, plan.a.raw, plan.b.raw, plan.d.raw, plan.d.raw, &one.algo, &checked) !=
          CUBLAS_STATUS_SUCCESS ||
      checked.state != CUBLAS_STATUS_SUCCESS)
    return false;
  one.workspaceSize = std::max(one.workspaceSize, checked.workspaceSize);
  return true;
}

SKEIN_NOINLINE inline Plan Library::make(const Product& p) const {
  const auto details = [&] { return p.text(); };
  Plan plan;
  describe(plan, p);
  const skein::cuda::Workspace& scratch = skein::cuda::workspace();
  const Preference preference = preference_of(p, scratch.sealed() ? std::min(scratch.size(), most_workspace) : most_workspace);
  constexpr int most_candidates = 4;  // best first
  cublasLtMatmulHeuristicResult_t candidates[most_candidates] = {};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, plan.operation.raw, plan.a.raw, plan.b.raw, plan.d.raw,
                                                               plan.d.raw, preference.raw, most_candidates, candidates, &found);
  const cublasLtMatmulHeuristicResult_t* best = nullptr;
  for (int i = 0; i < found && !best; ++i)
    if (usable(handle, plan, candidates[i])) best = &candidates[i];
  if (p.epilogue != Epilogue::none &&
      (refused(status) || (status == CUBLAS_STATUS_SUCCESS && !best))) {  // the caller has another way
    note_refusal(p, status);
    return plan;
  }
  check(status, "cublasLtMatmulAlgoGetHeuristic", details);
  if (!best) check(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic", details);
  plan.algorithm = best->algo;
  plan.workspace = best->workspaceSize;
  plan.usable = true;
  return plan;
}
}  // namespace detail

/// Makes the plan of a product and its workspace, before a step wants them. False: the library has no kernel with that epilogue.
inline bool prepare(const Product& p) {
  if (p.m <= 0 || p.n <= 0 || p.k <= 0) return true;
  const detail::Plan& plan = detail::library().plan(p);
  if (plan.usable) skein::cuda::workspace().reserve(plan.workspace);
  return plan.usable;
}

/// Gives the product to the calling thread's stream; m, n, k > 0. False: not done, the library has no kernel with that epilogue.
/// Without an epilogue it is done, or throws DeviceError. The same bits in every run on one device.
inline bool multiply(const Product& p) {
  if (skein::cuda::replaying()) return true;
  detail::Library& library = detail::library();
  detail::Plan& plan = library.plan(p);
  if (!plan.usable) return false;
  if (plan.vector != p.vector) plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, plan.vector = p.vector);
  if (plan.aux != p.aux) plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, plan.aux = p.aux);
  const float single[2] = {static_cast<float>(p.alpha), static_cast<float>(p.beta)};
  const double twice[2] = {p.alpha, p.beta};
  const bool is_double = p.type == CUDA_R_64F;
  const void* alpha = is_double ? static_cast<const void*>(twice) : single;
  const void* beta = is_double ? static_cast<const void*>(twice + 1) : single + 1;
  const cublasStatus_t status = cublasLtMatmul(
      library.handle, plan.operation.raw, alpha, p.b, plan.a.raw, p.a, plan.b.raw, beta, p.d, plan.d.raw, p.d, plan.d.raw,
      &plan.algorithm, skein::cuda::workspace().get(plan.workspace), plan.workspace, skein::cuda::stream());
  if (p.epilogue != Epilogue::none && refused(status)) {
    detail::note_refusal(p, status);
    return plan.usable = false;
  }
  check(status, "cublasLtMatmul", [&] { return p.text(); });
  return true;
}

namespace detail {
inline const char* words_of(Epilogue e) {
  if (e == Epilogue::bias) return ", with bias";
  if (e == Epilogue::relu) return ", with ReLU";
  if (e == Epilogue::relu_bias) return ", with bias and ReLU";
  if (e == Epilogue::gelu || e == Epilogue::gelu_aux) return ", with GELU";
  if (e == Epilogue::gelu_bias || e == Epilogue::gelu_aux_bias) return ", with bias and GELU";
  return e == Epilogue::sums ? ", with sums of columns" : "";
}
}  // namespace detail

inline std::string Product::text() const {
  const auto shape = [](long rows, long columns) { return skein::text("({}, {})", rows, columns); };
  const auto name = [](cudaDataType_t t) {
    return t == CUDA_R_64F ? "double" : t == CUDA_R_16BF ? "bf16" : t == CUDA_R_16F ? "fp16" : "float";
  };
  std::string s = "of " + shape(m, k) + (ta == Transpose::yes ? "^T" : "") + " x " + shape(k, n) +
                  (tb == Transpose::yes ? "^T" : "") + ", " + name(type);
  if (type != result) s += std::string(" to ") + name(result);
  if (tf32) s += " by TF32";
  return skein::text("{}{}, rows {}, {}, {} apart", s, detail::words_of(epilogue), lda, ldb, ldd);
}

}  // namespace skein::inline SKEIN_ABI::ops::cublas
