#!/usr/bin/env bash
# Runs the tests under Miri and AddressSanitizer. What cannot be run is said, and is a failure with `--all`.
#
#     scripts/check-memory.sh [--all]
#
# Each tool has a build folder of its own in the target folder.
set -euo pipefail

case "${1:-}" in
'' | --all) ;;
*) echo 'usage: scripts/check-memory.sh [--all]' >&2; exit 1 ;;
esac
skipped=0
skip() {
    echo "== $1: skipped, $2"
    skipped=1
}

cd "$(dirname "$0")/.."
readonly target="${CARGO_TARGET_DIR:-target}"
readonly host="$(rustc -vV | sed -n 's/^host: //p')"

# The emulator's lanes are threads there, since Miri runs no assembly: so of the suite it runs the small tests.
if cargo +nightly miri --version >/dev/null 2>&1; then
    echo "== Miri"
    export MIRIFLAGS='-Zmiri-permissive-provenance -Zmiri-disable-isolation'
    CARGO_TARGET_DIR="$target/miri" cargo +nightly miri test -p kernel-primitives-gpu -p kernel-primitives-host -p kernel-primitives-macros --lib
    CARGO_TARGET_DIR="$target/miri" cargo +nightly miri test --test suite sanitize
else
    skip Miri 'not installed: rustup +nightly component add miri rust-src'
fi

# The sanitizer must be told of switches between stacks. corosensei tells it; the emulator's own switches do not. Its
# allocator is linked into the program, so that the emulator leaves overflows of stacks to the system: those tests are
# left out. Stacks that are kept for later launches hide what is on them from the search for leaks.
case "$host" in
x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu)
    echo "== AddressSanitizer, without the tests of stack overflows and the search for leaks"
    # The compiler's sanitizers are not stable; the installed compiler has them nonetheless.
    CARGO_TARGET_DIR="$target/asan" RUSTC_BOOTSTRAP=1 \
        RUSTFLAGS='-Zsanitizer=address --cfg emulator_portable_fibers' ASAN_OPTIONS=detect_leaks=0 \
        cargo test --target "$host" -p kernel-primitives -p kernel-primitives-gpu -p kernel-primitives-host \
        --features corosensei/sanitizer --lib --test suite -- --skip overflow::
    ;;
*)
    skip AddressSanitizer "not for $host"
    ;;
esac

echo "== ThreadSanitizer: skipped: without a standard library built for it, it takes that library's locks for races"

if [ "$skipped" = 1 ] && [ "${1:-}" = --all ]; then
    echo 'something was skipped' >&2
    exit 1
fi
