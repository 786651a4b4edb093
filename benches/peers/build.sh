#!/usr/bin/env bash
# Builds the peers of the GPU benchmarks, CUB, Thrust, cuSPARSE and cuFFT, as one shared library; each source by a process of its own.
# Without the headers of cuSPARSE or cuFFT, sparse.cu or fourier.cu is empty.
#
#     build.sh libpeers.so
#
# NVCC is the compiler, nvcc in PATH or in CUDA_HOME unless set; NVCC_ARCH the architecture, that of this machine's GPU unless
# set; NVCC_FLAGS are more flags. The compiler's Python wheels do as well as the toolkit (nvidia-cuda-nvcc, -cccl, -crt, -runtime
# and nvidia-nvvm), with NVCC_FLAGS="-I …/include/cccl".
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
nvcc="${NVCC:-nvcc}"
read -ra flags <<<"-O3 -std=c++17 -arch=${NVCC_ARCH:-native} -Xcompiler -fPIC ${NVCC_FLAGS:-}"

objects="$(mktemp -d)"
trap 'rm -rf "$objects"' EXIT
jobs=()
for source in "$here"/*.cu; do
    "$nvcc" "${flags[@]}" -c -o "$objects/$(basename "$source" .cu).o" "$source" &
    jobs+=($!)
    # No more at a time than there are cores.
    if [ "${#jobs[@]}" -ge "$(nproc)" ]; then
        wait "${jobs[0]}"
        jobs=("${jobs[@]:1}")
    fi
done
for job in "${jobs[@]}"; do
    wait "$job"
done
libraries=()
for library in cusparse cufft; do
    if "$nvcc" "${flags[@]}" -E -x cu - <<<"#include <$library.h>" >/dev/null 2>&1; then
        libraries+=("-l$library")
    fi
done
"$nvcc" "${flags[@]}" --shared -o "$1" "$objects"/*.o "${libraries[@]}"
