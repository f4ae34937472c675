#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What scripts/test --cuda and scripts/bench --cuda run: needs the CUDA toolkit (cuDNN and NCCL as found, also inside the Python packages
# of PyTorch), a C++ compiler and CMake 3.25. Writes what the machine is and what came out to build/cuda-report.* or build/cuda-bench.*.
# Usage: scripts/cuda.sh test [ARCH] | bench [--arch ARCH] [NAME...] [--quick]
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
build=$root/build/cuda
jobs=${SKEIN_JOBS:-$(nproc)}
what=${1:?scripts/cuda.sh: test or bench}
shift

arch=""
names=()
options=()
while [ $# -gt 0 ]; do
  case $1 in
    --arch) arch=${2:?scripts/cuda.sh: --arch takes architectures, such as 90}; shift ;;
    -*) options+=("$1") ;;
    *) if [ "$what" = test ]; then arch=$1; else names+=("$1"); fi ;;
  esac
  shift
done

# ---- tools
for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
  if ! command -v nvcc >/dev/null && [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ]; then export PATH=$folder/bin:$PATH; fi
done
command -v nvcc >/dev/null || { echo "scripts/$what --cuda: no nvcc here: install the CUDA toolkit (12 or newer), or set CUDA_HOME" >&2; exit 2; }
command -v cmake >/dev/null || { echo "scripts/$what --cuda: no cmake here (3.25 or newer; pip install cmake serves)" >&2; exit 2; }
gpus=$(nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader 2>/dev/null || true)
case $gpus in *failed*|*"No devices"*) gpus="" ;; esac
if [ -z "$arch" ]; then
  arch=$(sed -n 's/^[^,]*,[^,]*, *\([0-9]*\)\.\([0-9]*\),.*/\1\2/p' <<<"$gpus" | sort -u | paste -sd ';')
  arch=${arch:-80;90}
fi
generator=()
command -v ninja >/dev/null && generator=(-G Ninja)

# ---- build
mkdir -p build
log=$root/build/cuda-build.log
: >"$log"
began=$SECONDS
configure=(cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DSKEIN_CUDA=ON "-DSKEIN_CUDA_ARCHITECTURES=$arch"
           -DSKEIN_TESTS=ON -DSKEIN_CUDA_ONLY=ON -DSKEIN_EXAMPLES=ON -DSKEIN_BENCH=ON -DSKEIN_INSTALL=OFF)
targets=(skein_cuda_programs)
if [ "$what" = bench ]; then
  if [ ${#names[@]} -eq 0 ]; then mapfile -t names < <(find bench/cuda -maxdepth 1 -name '*.cu' -printf '%f\n' | sed 's/\.cu$//' | sort); fi
  targets=(skein_on_gpu)
  for name in "${names[@]}"; do
    [ -e "bench/cuda/$name.cu" ] || { echo "scripts/bench --cuda: there is no bench/cuda/$name.cu" >&2; exit 2; }
    targets+=("bench_cuda_$name")
  done
fi
echo "$what --cuda: building for $arch (minutes; all of it in build/cuda-build.log)"
if ! { "${configure[@]}" && cmake --build "$build" -j "$jobs" --target "${targets[@]}"; } >>"$log" 2>&1 </dev/null; then
  grep -nE 'error|Error' "$log" | head -n 20
  tail -n 20 "$log"
  echo "$what --cuda: the build failed; all of it is in build/cuda-build.log" >&2
  exit 1
fi
seconds=$((SECONDS - began))

# ---- the machine, as Markdown lines "| what | which |"
found() { sed -n "s/^--   in:  $1 *//p" "$log" | head -n 1; }
machine() {
  echo "| machine | $(uname -srm), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1), $(nproc) cores |"
  if [ -n "$gpus" ]; then
    while IFS= read -r line; do echo "| GPU (name, driver, compute capability, memory) | $line |"; done <<<"$gpus"
  else
    echo "| GPU | none |"
  fi
  echo "| CUDA toolkit | $(found cuda) |"
  echo "| cuDNN | $(found cudnn) |"
  echo "| NCCL | $(found nccl) |"
  echo "| compilers | $(nvcc --version | sed -n 's/^Build //p'), $(${CXX:-c++} --version | head -n 1) |"
  echo "| compiled for | $arch, in $seconds s |"
  echo "| sources | $(git describe --always --dirty 2>/dev/null || echo unknown) |"
}
json_text() { sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/ /g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'; }

has_gpu=1
"$build/skein_on_gpu" 1 "$(command -v true)" >/dev/null 2>&1 || has_gpu=0

if [ "$what" = test ]; then
  report=$root/build/cuda-report
  status=0
  sanitized="not run"
  if [ $has_gpu -eq 1 ]; then
    ctest --test-dir "$build" -L gpu --output-on-failure --no-tests=error --timeout 1800 </dev/null 2>&1 | tee "$build/ctest.txt"
    status=${PIPESTATUS[0]}
    "$build/tests/test_cuda" </dev/null >"$build/test_cuda.txt" 2>&1
    cases=$(grep -E '^(test cases:|All tests passed)' "$build/test_cuda.txt" | tail -n 1)
    if command -v compute-sanitizer >/dev/null; then
      echo "test --cuda: compute-sanitizer (memcheck) over the same tests"
      if compute-sanitizer --tool memcheck --error-exitcode 9 --leak-check no "$build/tests/test_cuda" </dev/null >"$build/memcheck.txt" 2>&1; then
        sanitized="memcheck: $(grep -E 'ERROR SUMMARY' "$build/memcheck.txt" | tail -n 1 | sed 's/^=* *//')"
      else
        sanitized="memcheck FAILED: $(grep -E 'ERROR SUMMARY' "$build/memcheck.txt" | tail -n 1 | sed 's/^=* *//'); all of it in build/cuda/memcheck.txt"
        status=1
      fi
    else
      sanitized="no compute-sanitizer here"
    fi
  else
    cases=$("$build/tests/test_cuda" 2>&1 | tail -n 1)
    status=77
  fi
  {
    echo "# skein on GPUs: tests"
    echo
    echo "| what | which |"
    echo "|---|---|"
    machine
    echo "| test_cuda | $cases |"
    echo "| programs | $(sed -n 's/^\(.*tests passed.*\)$/\1/p' "$build/ctest.txt" 2>/dev/null | tail -n 1) |"
    echo "| compute-sanitizer | $sanitized |"
  } >"$report.md"
  if [ $status -eq 77 ]; then sed -i 's/^| programs |.*/| programs | compiled and linked, not run: no GPU |/' "$report.md"; fi
  printf '{"status": "%s", "machine": "%s", "test_cuda": "%s", "compute_sanitizer": "%s"}\n' \
    "$([ $status -eq 0 ] && echo passed || { [ $status -eq 77 ] && echo skipped || echo failed; })" \
    "$(machine | json_text)" "$(json_text <<<"$cases")" "$(json_text <<<"$sanitized")" >"$report.json"
  cat "$report.md"
  case $status in
    0) echo "test --cuda: all passed; the report is build/cuda-report.md" ;;
    77) echo "test --cuda: there is no GPU here: everything was compiled and linked, nothing was run ($cases)" ;;
    *) echo "test --cuda: failed; build/cuda-report.md, build/cuda/ctest.txt" >&2 ;;
  esac
  exit $status
fi

# ---- benches
if [ $has_gpu -eq 0 ]; then
  echo "bench --cuda: there is no GPU here: ${names[*]}: compiled and linked, nothing was measured"
  exit 77
fi
results=$root/build/cuda-bench.jsonl
report=$root/build/cuda-bench.md
: >"$results"
peer=${SKEIN_PEER_PYTHON:-}
if [ -z "$peer" ]; then
  for python in "$root/build/peer-venv/bin/python" "$(command -v python3 || true)"; do
    if [ -n "$python" ] && [ -x "$python" ] && "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then peer=$python; break; fi
  done
fi
[ -n "$peer" ] || echo "bench --cuda: no PyTorch that sees the GPU (set SKEIN_PEER_PYTHON): only our own figures follow" >&2
failed=()
for name in "${names[@]}"; do
  echo "== $name"
  SKEIN_PEER_PYTHON=$peer "$build/bench/cuda/$name" --json "$build/bench-$name.json" "${options[@]}" || failed+=("$name")
  if [ -e "$build/bench-$name.json" ]; then cat "$build/bench-$name.json" >>"$results"; rm -f "$build/bench-$name.json"; fi
done
{
  echo "# skein on GPUs: benches"
  echo
  echo "| what | which |"
  echo "|---|---|"
  machine
  if [ -n "$peer" ]; then echo "| peer | PyTorch $("$peer" -c 'import torch; print(torch.__version__, "CUDA", torch.version.cuda, "cuDNN", torch.backends.cudnn.version())') |"; fi
  if command -v python3 >/dev/null; then echo; python3 bench/report.py "$results"; else echo; sed 's/^/    /' "$results"; fi
} >"$report"
echo "bench --cuda: the report is build/cuda-bench.md"
if [ ${#failed[@]} -gt 0 ]; then echo "bench --cuda: failed: ${failed[*]}" >&2; exit 1; fi
