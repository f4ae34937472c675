# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that start ranks, in the folder of the sources: ranks_start N sets the array `start` to the mpirun command for N
# ranks here, one core each where there are so many; else one hardware thread each; else they share, and ranks_placing says so.

if [ "$(id -u)" -eq 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
# What the caller has set of these stays: bench/shared_memory asks for cma.
export OMPI_MCA_btl_base_warn_component_unused=${OMPI_MCA_btl_base_warn_component_unused:-0}
export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism:-none}

ranks_start() {
  local ranks=$1
  start=(mpirun --bind-to core -n "$ranks")
  ranks_placing="one core each"
  "${start[@]}" true >/dev/null 2>&1 </dev/null && return
  start=(mpirun --use-hwthread-cpus --bind-to hwthread -n "$ranks")
  ranks_placing="one hardware thread each"
  "${start[@]}" true >/dev/null 2>&1 </dev/null && return
  start=(mpirun --oversubscribe --bind-to none -n "$ranks")
  ranks_placing="sharing $(nproc) core(s)"
}
