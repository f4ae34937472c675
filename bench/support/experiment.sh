# SPDX-License-Identifier: Apache-2.0
# Sourced by benches that run a program of examples/experiments: bench/NAME.sh. `experiment_begin NAME "$@"` takes --quick and --json FILE
# (quick=1, json=FILE; anything else is for the program: rest), builds the program NAME and sets `program`. Those that write JSON get
# "${json_flags[@]}". Where ranks are processes: . scripts/ranks.sh; ranks_start N; "${start[@]}" "$program" ...
set -euo pipefail

experiment_begin() {
  local name=$1 build=$PWD/build/bench
  shift
  quick=0 json= rest=() json_flags=()
  while [ $# -gt 0 ]; do
    case $1 in
      --quick) quick=1 ;;
      --json) json=${2:?--json takes a file}; json_flags=(--json "$json"); shift ;;
      *) rest+=("$1") ;;
    esac
    shift
  done
  mkdir -p "$build"
  if ! { cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSKEIN_TESTS=OFF -DSKEIN_EXAMPLES=ON -DSKEIN_INSTALL=OFF &&
         cmake --build "$build" --target "example_$name"; } >"$PWD/build/bench.log" 2>&1 </dev/null; then
    tail -n 40 "$PWD/build/bench.log"
    echo "bench: experiment $name does not build; all of it is in build/bench.log" >&2
    exit 1
  fi
  program=$build/examples/experiments/$name
}
