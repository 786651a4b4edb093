#!/usr/bin/env bash
# Makes the packages of all crates, with the kernels compiled, in target/package: the same bytes whenever and wherever it runs on the
# same commit with the same tools. It packs what is committed, and refuses a tree with changes. Then it builds and runs a program from
# the packages (scripts/check-packages.sh). It needs the device tool chain (scripts/setup-device-toolchain.sh), zstd and a network, and
# takes up to an hour on two cores if the cache has no kernels.
#
#     scripts/release.sh [--publish]
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

case "${1:-}" in
    '' | --publish) ;;
    *) echo 'usage: scripts/release.sh [--publish]' >&2; exit 1 ;;
esac

# A registry takes no more.
readonly most=$((10 * 1024 * 1024))

for tool in zstd cargo; do
    command -v "$tool" > /dev/null || { echo "release.sh needs $tool" >&2; exit 1; }
done

changes=$(git status --porcelain)
if [ -n "$changes" ]; then
    printf 'release.sh packs a commit, and these changes are in none:\n%s\n' "$changes" >&2
    exit 1
fi

# Whatever the user's environment says of architectures, targets and folders.
unset KERNEL_PRIMITIVES_FROM_SOURCE KERNEL_PRIMITIVES_ARCHS KERNEL_PRIMITIVES_TEST_ARCHS KERNEL_PRIMITIVES_REPORT_ARCHS KERNEL_PRIMITIVES_DUMP KERNEL_PRIMITIVES_LINE_INFO CARGO_BUILD_TARGET
export CARGO_TARGET_DIR="$PWD/target"
readonly root="$PWD" packages="$PWD/target/package" out="$PWD/target/release-kernels"

# The archive lies in a tree of its own, so that builds in this one take their kernels from the source.
readonly tree="$PWD/target/release-tree"
remove_tree() { git worktree remove --force "$tree" 2> /dev/null || rm -rf "$tree"; }
remove_tree
git worktree prune
trap remove_tree EXIT
git worktree add --quiet --detach "$tree" HEAD

echo '== that they fit all architectures, and spill on none'
KERNEL_PRIMITIVES_REPORT_ARCHS=86,87,89,120 cargo test --quiet --features cuda --test ptx --test expression_ptx

echo '== the tests that take a part of their cases each day'
KERNEL_PRIMITIVES_NET_CASES=200 cargo test --quiet --release --test split --test net

echo '== the example with candle'
cargo run --quiet --release --manifest-path examples/candle/Cargo.toml
if command -v nvcc > /dev/null; then
    cargo check --quiet --manifest-path examples/candle/Cargo.toml --features cuda
else
    echo 'nvcc is not here: what the example does on a GPU is not checked' >&2
fi

echo '== the kernels'
mkdir -p "$out"
cargo build --quiet --package kernel-primitives-build --example prebuild
CARGO_PKG_NAME=kernel-primitives CARGO_MANIFEST_DIR="$PWD" OUT_DIR="$out" \
    target/debug/examples/prebuild "$out/kernels" > "$out/log" || { cat "$out/log" >&2; exit 1; }
# What they were made from and with.
{ git rev-parse HEAD; cargo run --quiet --package kernel-primitives-build --bin kernel-primitives-doctor; } | tee "$out/made-from"
zstd --quiet --force -19 --check --single-thread "$out/kernels" -o "$tree/prebuilt/kernels.zst"

echo '== the packages'
rm -f "$packages"/*.crate
cd "$tree"
# Git does not know the archive, so that the tree counts as changed.
cargo package --quiet --workspace --allow-dirty --no-verify
for package in "$packages"/*.crate; do
    bytes=$(stat --format %s "$package")
    printf '%9d  %2d %% of the limit  %s  %s\n' "$bytes" $((bytes * 100 / most)) "$(sha256sum "$package" | cut -c1-16)" "${package##*/}"
    if [ "$bytes" -gt "$most" ]; then
        echo "$package is larger than the registry's limit of $most bytes" >&2
        exit 1
    fi
    # In time for something to be done.
    if [ "$bytes" -gt $((most / 10 * 8)) ]; then
        echo "${package##*/} takes more than 8 tenths of what the registry allows: see \"The shipped kernels\" in docs/architecture.md" >&2
    fi
done

echo '== the documentation, with the features that docs.rs takes'
RUSTDOCFLAGS='-D warnings --cfg docsrs' cargo doc --quiet --workspace --no-deps --features dlpack,ndarray

echo '== a program from the packages'
"$root/scripts/check-packages.sh"

# Licences, advisories, and one major version of each crate.
if cargo deny --version > /dev/null 2>&1; then
    echo '== dependencies'
    cargo deny check
else
    echo 'cargo-deny is not installed: dependencies are not checked' >&2
fi

# Whether the version says what changed since the last release.
if cargo semver-checks --version > /dev/null 2>&1; then
    echo '== compatibility'
    # One by one: a crate that the registry does not have yet would end the checks of all.
    for package in $(cargo metadata --no-deps --format-version 1 | grep -o '"name":"kernel-primitives[a-z-]*","version"' | cut -d'"' -f4); do
        if ! cargo semver-checks --package "$package" > "$out/semver" 2>&1; then
            # Of macros it has nothing to compare, which it takes for an error.
            if grep --quiet 'no crates with library targets' "$out/semver"; then continue; fi
            grep --quiet "$package not found in registry" "$out/semver" || { cat "$out/semver" >&2; exit 1; }
            echo "$package has no release yet"
        fi
    done
else
    echo 'cargo-semver-checks is not installed: what changed for users since the last release is not checked' >&2
fi

if [ "${1:-}" = --publish ]; then
    echo '== to the registry'
    cargo publish --workspace --allow-dirty --no-verify
fi
