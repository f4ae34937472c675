# SPDX-License-Identifier: Apache-2.0
# Sourced by benches that run a program of examples/experiments: bench/NAME.sh. `experiment_begin NAME "$@"` takes --quick and --json FILE
# (quick=1, json=FILE; anything else is for the program: rest), builds the program NAME and sets `program`. Those that write JSON get
# "${json_flags[@]}", those that draw "${svg_flags[@]}", which `experiment_draws` sets. Where ranks are processes: . scripts/ranks.sh;
# ranks_start N; "${start[@]}" "$program" ...
set -euo pipefail

experiment_begin() {
  local name=$1 build=$PWD/build/bench
  shift
  quick=0 json= rest=() json_flags=() svg_flags=()
  unset svg                                                     # --svg NAME; empty: no pictures
  while [ $# -gt 0 ]; do
    case $1 in
      --quick) quick=1 ;;
      --json) json=${2:?--json takes a file}; json_flags=(--json "$json"); shift ;;
      --json=*) json=${1#*=}; json_flags=(--json "$json") ;;
      --svg) svg=${2?--svg takes what the names of pictures begin with}; shift ;;
      --svg=*) svg=${1#*=} ;;
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

# experiment_draws NAME [SUFFIX]: svg_flags for one of several starts: NAME, or what the caller's --svg says, and the suffix, so that no start
# overwrites another's pictures.
experiment_draws() {
  svg_flags=()
  if [ -n "${svg-$1}" ]; then svg_flags=(--svg "${svg-$1}${2:-}"); fi
}

# experiment_value FLAG DEFAULT: the value of --FLAG among the caller's (of several the last, as the program has it).
experiment_value() {
  local name=$1 value=$2 i word
  for ((i = 0; i < ${#rest[@]}; ++i)); do
    word=${rest[i]%%=*}
    if [ "${word//_/-}" != "--$name" ]; then continue; fi
    if [ "$word" != "${rest[i]}" ]; then value=${rest[i]#*=}; else value=${rest[i + 1]-}; fi
  done
  echo "$value"
}

# experiment_without FLAG...: sets `left` to the caller's flags without these and their values: a start that has no use for them refuses them.
experiment_without() {
  local i word
  left=()
  for ((i = 0; i < ${#rest[@]}; ++i)); do
    word=${rest[i]%%=*}
    case " ${*/#/--} " in
      *" ${word//_/-} "*) if [ "$word" = "${rest[i]}" ]; then i=$((i + 1)); fi ;;
      *) left+=("${rest[i]}") ;;
    esac
  done
}
