#!/usr/bin/env bash
# Installs what compiling kernels for NVIDIA GPUs takes on Debian and Ubuntu, beside rustup:
#   - the distribution's newest Rust compiler with the sources of core, and LLVM 22, by apt; where the
#     distribution has none (Ubuntu), a nightly of rustup with its sources and LLVM tools;
#   - libdevice, ptxas, nvdisasm and cuobjdump, as NVIDIA's Python wheels in an environment of their own.
# kernel-primitives-build finds both without further settings. Running it again is quick and changes nothing.
set -euo pipefail

readonly cuda_version=13.0.88
readonly llvm_version=22
readonly llvm_bin="/usr/lib/llvm-${llvm_version}/bin"
readonly packages=(rustc-web rust-web-src "llvm-${llvm_version}")
readonly venv="${XDG_DATA_HOME:-$HOME/.local/share}/kernel-primitives/cuda"
readonly wheels=(
    "nvidia-cuda-nvcc==${cuda_version}"
    "nvidia-nvvm==${cuda_version}"
    nvidia-cuda-nvdisasm
    nvidia-cuda-cuobjdump
)

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

is_installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

# Prints the path of a file in the environment; fails if it is not there.
in_venv() {
    local path
    for path in "$venv"/lib/python3*/site-packages/nvidia/*/"$1"; do
        if [ -e "$path" ]; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    return 1
}

install_packages() {
    local missing=() package
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    if [ "${#missing[@]}" -eq 0 ]; then
        return 0
    fi
    echo "installing ${missing[*]}"
    # `env` sets the variable behind sudo, which drops those of the caller.
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --quiet --no-install-recommends "${missing[@]}"
}

# Debian's security suite has the compiler; elsewhere a nightly of rustup does the same.
install_compiler() {
    local package
    for package in "${packages[@]}"; do
        if ! is_installed "$package"; then
            as_root apt-get update -qq
            break
        fi
    done
    for package in "${packages[@]}"; do
        if ! is_installed "$package" && ! apt-cache show "$package" >/dev/null 2>&1; then
            if ! command -v rustup >/dev/null; then
                echo "apt has no $package and there is no rustup (https://rustup.rs): install one of them" >&2
                exit 1
            fi
            rustup toolchain install nightly --profile minimal --component rust-src --component llvm-tools
            echo "rustc:     $(rustup run nightly rustc --version), with its own LLVM"
            return 0
        fi
    done
    install_packages "${packages[@]}"
    echo "rustc:     $(/usr/bin/rustc --version)"
    echo "LLVM:      $("$llvm_bin/llc" --version | sed -n "s|.*LLVM version |$llvm_bin, |p")"
}

install_wheels() {
    local complete=yes file
    for file in nvvm/libdevice/libdevice.10.bc bin/ptxas bin/nvdisasm bin/cuobjdump; do
        in_venv "$file" >/dev/null || complete=no
    done
    # The marker tells the wheels' version: a newer script replaces an older one's.
    if [ "$complete" = yes ] && [ "$(cat "$venv/version" 2>/dev/null || true)" = "$cuda_version" ]; then
        return 0
    fi
    echo "installing the CUDA ${cuda_version} wheels in $venv"
    if ! [ -x "$venv/bin/pip" ]; then
        # Debian's python3 has no ensurepip without this package; other Pythons bring it.
        python3 -c 'import ensurepip' 2>/dev/null || install_packages python3-venv
        python3 -m venv "$venv"
    fi
    "$venv/bin/pip" install --quiet --disable-pip-version-check "${wheels[@]}"
    printf '%s\n' "$cuda_version" >"$venv/version"
}

if ! command -v apt-get >/dev/null; then
    echo "this script is for Debian and Ubuntu; elsewhere:" >&2
    echo "    rustup toolchain install nightly --component rust-src --component llvm-tools" >&2
    echo "    pip install ${wheels[*]}" >&2
    exit 1
fi
install_compiler
command -v python3 >/dev/null || install_packages python3 python3-venv
install_wheels

echo "libdevice: $(in_venv nvvm/libdevice/libdevice.10.bc)"
echo "ptxas:     $(in_venv bin/ptxas)"
echo "nvdisasm:  $(in_venv bin/nvdisasm)"
echo "cuobjdump: $(in_venv bin/cuobjdump)"
