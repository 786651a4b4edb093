#!/usr/bin/env bash
# Builds and runs a user's program from the packages of scripts/release.sh alone: in an empty folder, without a network, a device tool
# chain, CUDA or a driver. It prints how long the build takes, which should be 90 s or less on two cores. On a GPU, the program fails
# if the first launch takes more than 150 ms.
#
#     scripts/check-packages.sh [folder]     # target/check-packages unless named; the program stays there
set -euo pipefail
export LC_ALL=C
readonly root="$(cd "$(dirname "$0")/.." && pwd)"
readonly check="$(realpath --canonicalize-missing "${1:-$root/target/check-packages}")"
cd "$root"

packages=(target/package/*.crate)
if ! [ -e "${packages[0]}" ]; then
    echo 'there are no packages in target/package: scripts/release.sh makes them' >&2
    exit 1
fi

# Nothing goes but what this script has made.
if [ -e "$check" ] && ! [ -e "$check/.packages-checked-here" ]; then
    echo "$check exists and was not made by this script: name another folder" >&2
    exit 1
fi
rm -rf "$check"
mkdir -p "$check/home"
touch "$check/.packages-checked-here"
cp -r tests/packaged "$check/program"

# The others' crates, as a registry would give them; what is developed here comes as packages.
cargo vendor --quiet --versioned-dirs "$check/vendor" > /dev/null
for package in "${packages[@]}"; do
    name=$(basename "$package" .crate)
    rm -rf "$check/vendor/$name"
    tar --extract --gzip --file "$package" --directory "$check/vendor"
    printf '{"files":{},"package":"%s"}' "$(sha256sum "$package" | cut -d' ' -f1)" > "$check/vendor/$name/.cargo-checksum.json"
done
mkdir "$check/program/.cargo"
cat > "$check/program/.cargo/config.toml" << END
[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "$check/vendor"
[net]
offline = true
END

# Rust's own programs and a linker are all that the build finds, and no folder of the user's.
readonly toolchain="$(rustc --print sysroot)"
began=$SECONDS
cd "$check/program"
env -i PATH="$toolchain/bin:/usr/bin:/bin" HOME="$check/home" CARGO_TARGET_DIR="$check/target" \
    KERNEL_PRIMITIVES_LLVM_BIN=/none KERNEL_PRIMITIVES_RUSTC=/none KERNEL_PRIMITIVES_LIBDEVICE=/none KERNEL_PRIMITIVES_PTXAS=/none \
    cargo build --release
printf 'built in %d s\n' $((SECONDS - began))

# The kernels' code is a part of the object files alone. A copy in the metadata costs 90 MB for each architecture.
metadata=$(stat --format %s "$check"/target/release/deps/libkernel_primitives-*.rmeta)
if [ "$metadata" -gt $((50 * 1024 * 1024)) ]; then
    echo "the metadata of kernel-primitives has $metadata bytes: are the kernels in it?" >&2
    exit 1
fi

# The driver keeps the kernels that it has compiled, and a user's first launch has none of these.
readonly program="$check/target/release/packaged"
env -i CUDA_CACHE_DISABLE=1 "$program" | tee "$check/output"
if grep --quiet 'not checked without a GPU' "$check/output"; then
    printf 'on a machine with a GPU, this checks the first launch:\n    CUDA_CACHE_DISABLE=1 KERNEL_PRIMITIVES_DEVICE=gpu %s\n' "$program"
fi
