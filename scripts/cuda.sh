#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The programs for GPUs, in stages. Each can be cut at any time and called again: what a stage has passed with the same binary it does not
# run again. Results are appended to ${OUT:-build}/cuda-results.txt as they come; the report is made of them at the end of each stage.
# Usage: scripts/cuda.sh STAGE [ARCH] [options] [NAME...]
#   build      configures and compiles the tests and examples for ARCH (80, 90, "80;90"; default: the GPU that is here)
#   test       each test file in a process of its own, four at a time, then the examples; NAME chooses files, such as gemm_test
#   sanitize   compute-sanitizer: memcheck with races of stream-ordered memory over the test files, initcheck, racecheck and synccheck over kernels
#   bench      builds and runs bench/cuda/NAME.cu, beside PyTorch where that is here (--quick: short)
#   inventory  what the machine has
#   report     makes ${OUT:-build}/cuda-report.md and .json of what has been run
#   all        build, test, sanitize
# Options: --within SECONDS the whole stage, --limit SECONDS one program, -j N programs at a time, --arch ARCH, --quick (benches), --built (benches:
# the binaries are there)
# SKEIN_CUDA_BUILD is another build folder, such as one that was built elsewhere and carried here. The stages need: build: the CUDA toolkit
# (cuDNN and NCCL as found, also inside the Python packages of PyTorch), a C++ compiler and CMake 3.25; test: the binaries, and ctest for the
# examples. They return 77 where there is no GPU.
set -uo pipefail
. "$(dirname "$0")/paths.sh"
cd "$(dirname "$0")/.."
root=$PWD
build=${SKEIN_CUDA_BUILD:-$root/build/cuda}
out=${OUT:-$root/build}
results=$out/cuda-results.txt
stage=${1:?scripts/cuda.sh: which stage? build, test, sanitize, bench, inventory, report or all}
shift

arch="" within="" limit="" jobs="" built=0 names=() options=()
while [ $# -gt 0 ]; do
  case $1 in
    --arch) arch=${2:?scripts/cuda.sh: --arch takes architectures, such as 90}; shift ;;
    --within) within=${2:?scripts/cuda.sh: --within takes seconds}; shift ;;
    --limit) limit=${2:?scripts/cuda.sh: --limit takes seconds}; shift ;;
    --built) built=1 ;;
    -j) jobs=${2:?scripts/cuda.sh: -j takes a number}; shift ;;
    -*) options+=("$1") ;;
    *) if [[ $1 =~ ^[0-9]+(\;[0-9]+)*$ ]]; then arch=$1; else names+=("$1"); fi ;;
  esac
  shift
done
if [ "$stage" != bench ] && [ ${#options[@]} -gt 0 ]; then                    # a bench has options of its own
  echo "scripts/cuda.sh $stage: there is no option ${options[0]}; it takes --arch, --within, --limit and -j" >&2
  exit 2
fi

mkdir -p "$out/cuda" "$build/done"
for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
  if ! command -v nvcc >/dev/null && [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ]; then export PATH=$folder/bin:$PATH; fi
done
gpus=$(timeout 60 nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader 2>/dev/null || true)
case $gpus in *failed*|*"No devices"*) gpus="" ;; esac
if [ -z "$arch" ]; then
  arch=$(sed -n 's/^[^,]*,[^,]*, *\([0-9]*\)\.\([0-9]*\),.*/\1\2/p' <<<"$gpus" | sort -nu | paste -sd ';')
  arch=${arch:-80;90}
fi
has_gpu() { [ -x "$build/skein_on_gpu" ] && timeout 120 "$build/skein_on_gpu" 1 "$(type -P true)" >/dev/null 2>&1; }
need() { command -v "$1" >/dev/null || { echo "scripts/cuda.sh $stage: no $1 here: $2" >&2; return 2; }; }

# ---- one program after the other, or several at a time
began=$SECONDS
left() { echo $((${within:-86400} - (SECONDS - began))); }

# words STATUS FILE SECONDS: what came out, in a line.
words() {
  local last
  last=$(grep -aE '^(test cases:|All tests passed|stopped in test case|skipped |=* *ERROR SUMMARY)' "$2" | tail -n 1 | sed -E 's/^=+ *//; s/ +/ /g')
  case $1 in
    124|137) echo "cut after $3 s" ;;
    70) echo "${last:-stopped by an error that lasts}" ;;
    13[0-9]) echo "ended by signal $(($1 - 128)); ${last:-nothing said}" ;;
    *) echo "${last:-$(grep -av '^ *$' "$2" | tail -n 1 | cut -c 1-200)}" ;;
  esac
}

# one KIND NAME SECONDS COMMAND...: runs it within the time, writes its output to a file, and a line of results.
one() {
  local kind=$1 name=$2 seconds=$3 log=$out/cuda/$1/$2.txt status started=$SECONDS
  shift 3
  mkdir -p "$out/cuda/$kind" "$build/done/$kind"
  rm -f "$build/done/$kind/$name"
  timeout -k 10 "$seconds" "$@" >"$log" 2>&1 </dev/null
  status=$?
  if [ $status -eq 0 ] && [ "$kind" = program ] && grep -q 'Skipped' "$log"; then status=77; fi
  local line="$kind $name $status $((SECONDS - started)) $(words $status "$log" "$seconds")"
  echo "$line" >>"$results"
  echo "$line" >"$build/done/$kind/$name"
  echo "$line"
}

# pass KIND LIMIT BINARY NAME...: one by one, or $jobs at a time, those that have not passed with this binary; each by command_of KIND NAME.
pass() {
  local kind=$1 most=$2 binary=$3 name new=() again=() kept=0 mark time
  shift 3
  for name in "$@"; do
    mark=$build/done/$kind/$name
    if ! [ "$mark" -nt "$binary" ]; then new+=("$name")
    elif [[ $(cut -d' ' -f3 "$mark") =~ ^(0|77)$ ]]; then kept=$((kept + 1))
    else again+=("$name"); fi
  done
  [ $kept -eq 0 ] || echo "$kind: $kept passed before"
  for name in "${new[@]}" "${again[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "${jobs:-$at_once}" ]; do wait -n; done
    time=$(left)
    if [ "$time" -lt 5 ]; then echo "$kind $name - 0 not run: the time of this call is over" | tee -a "$results"; continue; fi
    [ "$time" -lt "$most" ] || time=$most
    command_of "$kind" "$name"
    one "$kind" "$name" "$time" "${command[@]}" &
  done
  wait
}

# Own kernels first: when a launch goes wrong, what follows says little.
order="evaluator_test reducer_test policies_test map_test elementwise_test convert_test transpose_test column_sums_test gemm_test product_test dense_test
  train_step_test optimizer_test linear_test dropout_test label_loss_test vector_loss_test row_normalize_test pool2d_test softmax_test"
test_files() {
  local all
  all=$("$build/tests/test_cuda" -\# --list-tags 2>/dev/null | grep -o '\[#[A-Za-z0-9_]*\]' | tr -d '[]#' | sort -u)
  { for name in $order; do grep -x "$name" <<<"$all"; done; grep -vxF "$(tr ' ' '\n' <<<"$order" | grep .)" <<<"$all"; } | grep .
}
# choose_files [REGEX]: files: those of names that there are, or all but what fits the expression.
choose_files() {
  local all name
  mapfile -t all < <(test_files)
  files=()
  if [ ${#names[@]} -eq 0 ]; then mapfile -t files < <(printf '%s\n' "${all[@]}" | grep -vE "${1:-^$}"); return; fi
  for name in "${names[@]}"; do
    if printf '%s\n' "${all[@]}" | grep -qxF "$name"; then files+=("$name")
    else echo "$stage $name - 0 not run: the program has no such file of tests" | tee -a "$results"; fi
  done
}
command_of() {
  local tool=${1#sanitize_} test=("$build/tests/test_cuda" -\# "[#$2]")
  case $1 in
    test) command=("${test[@]}") ;;
    program) command=(ctest --test-dir "$build" -R "^${2//./\\.}\$" --output-on-failure --no-tests=error) ;;
    sanitize_memcheck) command=(compute-sanitizer --tool memcheck --track-stream-ordered-races all --leak-check no --report-api-errors no --error-exitcode 9 "${test[@]}") ;;
    sanitize_*) command=(compute-sanitizer --tool "$tool" --error-exitcode 9 "${test[@]}") ;;
    bench) command=(env SKEIN_PEER_PYTHON="$peer" "$build/bench/cuda/$2" --json "$out/cuda/bench/$2.json" "${options[@]}") ;;
  esac
}
no_gpu() {
  local count
  count=$("$build/tests/test_cuda" 2>&1 | tail -n 1)
  echo "scripts/cuda.sh $stage: there is no GPU here: what was compiled was not run ($count)"
}

# ---- what the machine is, as Markdown lines "| what | which |"
machine() {
  echo "| machine | $(uname -srm), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1), $(nproc) cores |"
  if [ -n "$gpus" ]; then
    while IFS= read -r line; do echo "| GPU (name, driver, compute capability, memory) | $line |"; done <<<"$gpus"
  else
    echo "| GPU | none |"
  fi
  cat "$build/machine.txt" 2>/dev/null
  echo "| sources | $(git describe --always --dirty 2>/dev/null || echo unknown) |"
}
json_text() { sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/ /g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'; }

# tally KIND...: "12 passed, 1 failed (conv2d_test), 2 skipped", of the last results of each.
tally() {
  local kind
  for kind in "$@"; do cat "$build/done/$kind"/* 2>/dev/null; done | awk '
    $3 == 0 { passed++; if (match($0, /in [0-9]+ test case/)) cases += substr($0, RSTART + 3, RLENGTH - 13) }
    $3 == 77 { skipped++ }
    $3 != 0 && $3 != 77 { failed++; named = named (named == "" ? "" : ", ") $2 }
    END { if (passed + skipped + failed == 0) { printf "not run"; exit }
          printf "%d passed", passed; if (cases) printf " (%d test cases)", cases
          if (failed) printf ", %d FAILED (%s)", failed, named
          if (skipped) printf ", %d skipped", skipped }'
}
failures() { cat "$build/done"/{test,program,sanitize_*,bench}/* 2>/dev/null | awk '$3 != 0 && $3 != 77'; }
report() {
  local tests programs sanitized state=passed
  tests=$(tally test) programs=$(tally program)
  sanitized=$(for tool in memcheck initcheck racecheck synccheck; do echo "$tool: $(tally sanitize_$tool)"; done | paste -sd ';' | sed 's/;/; /g')
  [ -z "$(failures)" ] || state=failed
  has_gpu || state=skipped
  {
    echo "# skein on GPUs: tests"
    echo
    echo "| what | which |"
    echo "|---|---|"
    machine
    echo "| test files | $tests |"
    echo "| programs | $programs |"
    echo "| compute-sanitizer | $sanitized |"
    if [ -n "$(failures)" ]; then
      echo
      echo "What failed (stage, name, status, seconds, last words):"
      echo
      failures | sed 's/^/    /'
    fi
  } >"$out/cuda-report.md"
  printf '{"status": "%s", "machine": "%s", "test_cuda": "%s", "programs": "%s", "compute_sanitizer": "%s", "failures": "%s"}\n' \
    "$state" "$(machine | json_text)" "$(json_text <<<"$tests")" "$(json_text <<<"$programs")" "$(json_text <<<"$sanitized")" \
    "$(failures | json_text)" >"$out/cuda-report.json"
}

# ---- the stages
stage_build() {
  local log=$out/cuda-build.log generator=() targets=(skein_cuda_programs "$@") started=$SECONDS
  need nvcc "install the CUDA toolkit (12 or newer), or set CUDA_HOME" && need cmake "3.25 or newer; pip install cmake serves" || return 2
  command -v ninja >/dev/null && generator=(-G Ninja)
  echo "build: for $arch (minutes; all of it in $log)"
  if ! { timeout -k 10 300 cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DSKEIN_CUDA=ON "-DSKEIN_CUDA_ARCHITECTURES=$arch" \
           -DSKEIN_TESTS=ON -DSKEIN_CUDA_ONLY=ON -DSKEIN_EXAMPLES=ON -DSKEIN_BENCH=ON -DSKEIN_INSTALL=OFF &&
         timeout -k 10 "${within:-7200}" cmake --build "$build" -j "${jobs:-${SKEIN_JOBS:-$(nproc)}}" --target "${targets[@]}"; } >"$log" 2>&1 </dev/null; then
    grep -nE 'error|Error' "$log" | head -n 20
    tail -n 20 "$log"
    echo "scripts/cuda.sh build: failed, or was cut after $((SECONDS - started)) s; called again it goes on from there; all of it is in $log" | tee -a "$results" >&2
    return 1
  fi
  if [ $# -eq 0 ] && command -v python3 >/dev/null; then
    python3 tests/house/traps.py "$build/tests/test_cuda" || { echo "scripts/cuda.sh build: kernels that cannot run" | tee -a "$results" >&2; return 1; }
  fi
  local found='s/^--   in:  cuda *\(.*\)/| CUDA toolkit | \1 |/p; s/^--   in:  cudnn *\(.*\)/| cuDNN | \1 |/p; s/^--   in:  nccl *\(.*\)/| NCCL | \1 |/p'
  { sed -n "$found" "$log"
    echo "| compilers | $(nvcc --version | sed -n 's/^Build //p'), $(${CXX:-c++} --version | head -n 1) |"
    echo "| compiled for | $arch |"; } >"$build/machine.txt"
  echo "build all 0 $((SECONDS - started)) for $arch" | tee -a "$results"
}
stage_test() {
  local programs=()
  [ -x "$build/tests/test_cuda" ] || { echo "scripts/cuda.sh test: no $build/tests/test_cuda: scripts/cuda.sh build makes it" >&2; return 2; }
  has_gpu || { no_gpu; report; return 77; }
  at_once=4
  choose_files
  if [ ${#names[@]} -gt 0 ]; then
    pass test "${limit:-300}" "$build/tests/test_cuda" "${files[@]}"
  else
    pass test "${limit:-300}" "$build/tests/test_cuda" "${files[@]}"
    at_once=2
    if command -v ctest >/dev/null; then
      mapfile -t programs < <(ctest --test-dir "$build" -N -L gpu | sed -n 's/^ *Test *#[0-9]*: *//p' | grep -vx cuda)
      [ ${#programs[@]} -eq 0 ] || pass program "${limit:-300}" "$build/tests/test_cuda" "${programs[@]}"
    else
      echo "program - - 0 not run: no ctest here" | tee -a "$results"
    fi
  fi
  finish test program
}
stage_sanitize() {
  local row
  command -v compute-sanitizer >/dev/null || { echo "sanitize - - 0 not run: no compute-sanitizer here" | tee -a "$results"; report; return 0; }
  has_gpu || { no_gpu; report; return 77; }
  at_once=2
  # Not what searches plans of cuDNN or speaks NCCL: minutes each, in the libraries' code.
  choose_files 'conv|half_images|nccl|comm_test|host_bounce|data_parallel|networks_test|trainer'
  pass sanitize_memcheck "${limit:-300}" "$build/tests/test_cuda" "${files[@]}"
  if [ ${#names[@]} -eq 0 ]; then
    row=(label_loss_test column_sums_test row_normalize_test)
    pass sanitize_initcheck "${limit:-300}" "$build/tests/test_cuda" "${row[@]}"
    row=(reducer_test row_normalize_test column_sums_test transpose_test launch_blocks_test)  # what shares memory or shuffles
    pass sanitize_racecheck "${limit:-300}" "$build/tests/test_cuda" "${row[@]}"
    pass sanitize_synccheck "${limit:-300}" "$build/tests/test_cuda" "${row[@]}"
  fi
  finish sanitize_memcheck sanitize_initcheck sanitize_racecheck sanitize_synccheck
}
stage_bench() {
  local python targets=()
  if [ ${#names[@]} -eq 0 ]; then mapfile -t names < <(find bench/cuda -maxdepth 1 -name '*.cu' -printf '%f\n' | sed 's/\.cu$//' | sort); fi
  for name in "${names[@]}"; do
    [ -e "bench/cuda/$name.cu" ] || { echo "scripts/cuda.sh bench: there is no bench/cuda/$name.cu" >&2; return 2; }
    targets+=("bench_cuda_$name")
  done
  if [ $built -eq 0 ]; then stage_build "${targets[@]}" || return 1; fi
  has_gpu || { no_gpu; return 77; }
  peer=${SKEIN_PEER_PYTHON:-}
  if [ -z "$peer" ]; then
    for python in "$root/build/peer-venv/bin/python" "$(command -v python3 || true)"; do
      if [ -n "$python" ] && [ -x "$python" ] && timeout 120 "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then peer=$python; break; fi
    done
  fi
  [ -n "$peer" ] || echo "bench: no PyTorch that sees the GPU (set SKEIN_PEER_PYTHON): only our own figures follow" >&2
  jobs=1 at_once=1
  for name in "${names[@]}"; do rm -f "$build/done/bench/$name" "$out/cuda/bench/$name.json"; done  # figures are taken anew
  pass bench "${limit:-600}" "$build/skein_on_gpu" "${names[@]}"
  for name in "${names[@]}"; do cat "$out/cuda/bench/$name.txt"; done 2>/dev/null
  cat "$out"/cuda/bench/*.json >"$out/cuda-bench.jsonl" 2>/dev/null
  {
    echo "# skein on GPUs: benches"
    echo
    echo "| what | which |"
    echo "|---|---|"
    machine
    if [ -n "$peer" ]; then echo "| peer | PyTorch $("$peer" -c 'import torch; print(torch.__version__, "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version())') |"; fi
    if command -v python3 >/dev/null; then echo; python3 bench/report.py "$out/cuda-bench.jsonl"; else echo; sed 's/^/    /' "$out/cuda-bench.jsonl"; fi
  } >"$out/cuda-bench.md"
  finish bench
}
stage_inventory() {
  { timeout 60 nvidia-smi; timeout 60 nvcc --version
    for tool in cmake ninja ctest g++ compute-sanitizer ncu git python3; do command -v $tool || echo "no $tool"; done
    g++ --version | head -n 1; nproc; free -g
    timeout 120 find / -xdev \( -name cublasLt.h -o -name cusparse.h -o -name cudnn.h -o -name nccl.h -o -name 'libcublasLt.so*' -o -name 'libcusparse.so*' \
      -o -name 'libcudnn.so.9' -o -name 'libnccl.so*' \) 2>/dev/null; } >"$out/cuda/inventory.txt" 2>&1
  cat "$out/cuda/inventory.txt"
}
# finish KIND...: the report, and whether all that was run of these passed.
finish() {
  local kind
  report
  for kind in "$@"; do echo "$kind: $(tally "$kind")"; done
  echo "scripts/cuda.sh $stage: results in $results, the report is $out/cuda-report.md"
  [ -z "$(for kind in "$@"; do cat "$build/done/$kind"/* 2>/dev/null; done | awk '$3 != 0 && $3 != 77')" ]
}

case $stage in
  build|test|sanitize|bench|inventory) "stage_$stage" ;;
  report) report && cat "$out/cuda-report.md" ;;
  all)
    stage_build || exit 1
    stage_test; status=$?
    [ $status -eq 77 ] && exit 77
    stage_sanitize && exit $status ;;
  *) echo "scripts/cuda.sh: what is '$stage'? It takes build, test, sanitize, bench, inventory, report or all" >&2; exit 2 ;;
esac
