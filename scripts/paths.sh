# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts before they go to the folder of the sources: a path that the caller gives is seen from the folder of the call, $here.
here=$PWD

# from_here PATH: as it is seen from there.
from_here() { case $1 in /* | "") printf '%s' "$1" ;; *) printf '%s' "$here/$1" ;; esac; }

for variable in SKEIN_DATA OUT SKEIN_CUDA_BUILD; do
  if [ -n "${!variable:-}" ]; then export "$variable=$(from_here "${!variable}")"; fi
done
case ${SKEIN_PEER_PYTHON:-} in /*) ;; */*) export SKEIN_PEER_PYTHON=$here/$SKEIN_PEER_PYTHON ;; esac    # without a slash: of PATH
