#!/usr/bin/env bash
# Builds what a GPU machine without Rust needs to test and measure this library: test binaries, examples, benchmarks, the
# kernels' PTX and the sources of the benchmarks' peers, in one folder with a script `run`. The building machine needs the
# device tool chain (scripts/setup-device-toolchain.sh), but neither CUDA nor a GPU.
#
#     scripts/bundle.sh [folder]        # bundle/ unless named; what it held is replaced
#
# KERNEL_PRIMITIVES_ARCHS=90 builds for one architecture: sooner, and a quarter of the size. With NVCC, a compiler here, the peers
# are built here too, for NVCC_ARCH, which must be set; otherwise where they run (benches/peers/build.sh says more).
# PARTS=benches leaves out tests and examples.
set -euo pipefail
export LC_ALL=C

# Tests that need cargo, the sources or the build's folders: their binaries would not work elsewhere.
readonly stay_here=' compile_fail dump expression_ptx functions house kernel_cache pages ptx target_choices unsafe_list '

cd "$(dirname "$0")/.."
readonly bundle="${1:-bundle}"

# Nothing goes but what this script has made. A file BUILD proves nothing: packages of Bazel have one.
readonly mark="$bundle/.bundle-of-kernel-primitives"
if [ -e "$bundle" ] && ! [ -e "$mark" ]; then
    echo "$bundle exists and was not made by this script as it is now: remove it, or name another folder" >&2
    exit 1
fi

# Prints `kind name path` of each program in cargo's messages, and `ptx - path` of this package's folder of PTX. Cargo also
# reports what it did not need to build again.
programs() {
    python3 -c '
import json, os, sys

root = os.getcwd()
for line in sys.stdin:
    if not line.startswith("{"):
        continue
    message = json.loads(line)
    if message["reason"] == "compiler-artifact" and message.get("executable"):
        target = message["target"]
        if message["profile"]["test"] and target["kind"] != ["bench"]:
            kind = "test"
        else:
            kind = target["kind"][0]
        print(kind, target["name"], message["executable"])
    elif message["reason"] == "build-script-executed":
        # The path of a package id: path+file:///folder#name@version
        if root in message["package_id"].split("#")[0].split("file://")[-1:]:
            for name, value in message["env"]:
                if name == "KERNEL_PRIMITIVES_PTX":
                    print("ptx", "-", value)
'
}

build() {
    cargo "$@" --features cuda --message-format=json-render-diagnostics
}

list="$(mktemp)"
trap 'rm -f "$list"' EXIT
build bench --no-run --bench gpu | programs >"$list"
if [ "${PARTS:-all}" != benches ]; then
    build test --release --no-run | programs | sed '/^ptx /d' >>"$list"
    # Of an example with unit tests, the line above builds only these.
    build build --release --examples | programs | sed '/^ptx /d' >>"$list"
    # A crate of a user's, whose kernels are compiled apart from those of the library.
    build test --release --no-run --manifest-path examples/template/Cargo.toml --test kernels \
        --target-dir "${CARGO_TARGET_DIR:-target}" | programs | sed -n 's/^test /test template_/p' >>"$list"
fi

rm -rf "$bundle"
mkdir -p "$bundle"/{tests,examples,benches,peers,ptx}
touch "$mark"
{
    echo "commit  $(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
    echo "rustc   $(rustc --version)"
    echo "glibc   $(ldd --version | sed -n '1s/.* //p') or later"
} >"$bundle/BUILD"

while read -r kind name path; do
    case "$kind" in
        test)
            case "$stay_here" in
                *" $name "*) continue ;;
            esac
            cp "$path" "$bundle/tests/$name"
            ;;
        example) cp "$path" "$bundle/examples/$name" ;;
        bench) cp "$path" "$bundle/benches/$name" ;;
        ptx) cp -r "$path"/. "$bundle/ptx/" ;;
    esac
done <"$list"
# The programs carry their cubins; on the side, PTX and the report are for reading: not that of the tests' kernels, which is
# most of it.
find "$bundle/ptx" \( -name '*.cubin' -o -name '*.rs' \) -delete
for tests in tests/*/; do
    rm -rf "$bundle/ptx/$(basename "$tests")::"*
done
find "$bundle"/{tests,examples,benches} -type f -exec strip {} +
cp benches/peers/*.{cu,cuh,py,sh} "$bundle/peers/"
cp benches/report.py "$bundle/"
# The script reads from the sources which plot a row belongs to.
mkdir "$bundle/gpu"
cp -r benches/gpu/algorithms "$bundle/gpu/"
if [ -n "${NVCC:-}" ]; then
    NVCC_ARCH="${NVCC_ARCH:?the architecture of the GPU machine, such as sm_90}" \
        benches/peers/build.sh "$bundle/peers/libpeers.so"
    strip "$bundle/peers/libpeers.so"
fi
if ! [ -s "$bundle/ptx/index.txt" ]; then
    echo "the build left no PTX" >&2
    exit 1
fi

cat >"$bundle/run" <<'RUN'
#!/usr/bin/env bash
# Tests and measures kernel-primitives on this machine's GPU.
#
#     ./run tests        all tests
#     ./run sanitize     the tests with `sanitize` in their names, under compute-sanitizer
#     ./run quickstart   the example on its own data
#     ./run bench        the benchmarks, beside their peers: JSON, a page of tables, and plots
#     ./run all          all of it
#     ./run tune         tuning values for this GPU: what each gains, and a file for KERNEL_PRIMITIVES_TUNING
#
# Settings, as environment variables:
#     DEVICE         what runs kernels: gpu (the default), gpu:1, or emulator to try the bundle itself
#     DEVICES        what tests on several devices run on; as DEVICE, where gpu is all GPUs
#     RESULTS        folder for the full output; results/ beside this script
#     TEST_THREADS   tests at a time; 1, so that a fault or a full memory has one test to blame
#     TOOLS          sanitizer tools; memcheck racecheck synccheck
#     TIME_LIMIT     seconds for one program; 1200
#     NVCC_ARCH      architecture of the peers, unless the bundle has them; native
#     CUDA_HOME      the toolkit; /usr/local/cuda
#     LOG2           logarithm of the benchmarks' largest size; 30
#     PYTHON         Python with PyTorch, for its times beside ours, and matplotlib, for plots; python3
set -uo pipefail
export LC_ALL=C

usage() {
    sed -n '2,/^set /{/^#/!d;s/^# \{0,1\}//;p}' "$0"
    exit 2
}

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
readonly here
export KERNEL_PRIMITIVES_DEVICE="${DEVICE:-gpu}"
export KERNEL_PRIMITIVES_DEVICES="${DEVICES:-$KERNEL_PRIMITIVES_DEVICE}"
# NVLink's multicast off: a fault in it takes all GPUs of a host out of service. The benchmarks ask NCCL with this setting only.
export NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}"
readonly results="${RESULTS:-$here/results}"
readonly time_limit="${TIME_LIMIT:-1200}"
export PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
failures=()
passed=0

# Runs a program with its output in a file, and notes how it ended: `step NAME COMMAND...`.
step() {
    local name="$1" log code=0 start=$SECONDS
    shift
    log="$results/${name// /-}.log"
    timeout "$time_limit" "$@" >"$log" 2>&1 </dev/null || code=$?
    local summary
    summary="$(sed -n 's/^test result: [a-zA-Z]*\. //p' "$log" | tail -n 1 | sed 's/; [0-9]* measured.*//')"
    if [ "$code" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok      $name${summary:+: $summary} ($((SECONDS - start)) s)"
        return 0
    fi
    [ "$code" -eq 124 ] && summary="stopped after $time_limit s"
    failures+=("$name")
    echo "FAILED  $name, status $code${summary:+: $summary}; the end of $log:"
    tail -n 40 "$log" | sed 's/^/        /'
    return 1
}

fail() {
    failures+=("$1")
    echo "FAILED  $1: $2"
}

# The executable files of a folder, one a line.
programs() {
    find "$here/$1" -maxdepth 1 -type f -perm -u+x 2>/dev/null | sort
}

tests() {
    local program found=no
    while read -r program; do
        found=yes
        step "tests $(basename "$program")" "$program" --test-threads "${TEST_THREADS:-1}"
    done < <(programs tests)
    [ "$found" = yes ] || fail tests "the bundle has none"
}

sanitize() {
    local program name tool names test found=no
    if [[ $KERNEL_PRIMITIVES_DEVICE == emulator ]]; then
        fail sanitize "the sanitizers need a GPU, and DEVICE is emulator"
        return
    fi
    if ! command -v compute-sanitizer >/dev/null; then
        fail sanitize "no compute-sanitizer in PATH nor in ${CUDA_HOME:-/usr/local/cuda}/bin: set CUDA_HOME"
        return
    fi
    while read -r program; do
        name="$(basename "$program")"
        # Filters and lists as the tests' own harness does.
        names="$("$program" sanitize --list 2>/dev/null | sed -n 's/: test$//p')"
        [ -n "$names" ] || continue
        found=yes
        for tool in ${TOOLS:-memcheck racecheck synccheck}; do
            if [ "$name" = net ]; then
                # It calls every algorithm and collective, so each of its tests has the time limit of a program.
                for test in $names; do
                    step "sanitize $tool $name ${test##*::}" compute-sanitizer --tool "$tool" --error-exitcode 99 \
                        "$program" --exact "$test" --test-threads 1
                done
                continue
            fi
            step "sanitize $tool $name" compute-sanitizer --tool "$tool" --error-exitcode 99 \
                "$program" sanitize --test-threads 1
        done
    done < <(programs tests)
    [ "$found" = yes ] || fail sanitize "no test has \`sanitize\` in its name"
}

quickstart() {
    step quickstart "$here/examples/quickstart" && sed 's/^/        /' "$results/quickstart.log"
}

bench() {
    local program name json arguments found=no
    local peers="$here/peers/libpeers.so"
    if [[ $KERNEL_PRIMITIVES_DEVICE == emulator ]]; then
        fail bench "the benchmarks need a GPU, and DEVICE is emulator"
        return
    fi
    arguments=(--log2 "${LOG2:-30}")
    if [ ! -e "$peers" ] && ! command -v nvcc >/dev/null; then
        fail peers "no nvcc in PATH nor in ${CUDA_HOME:-/usr/local/cuda}/bin: set CUDA_HOME"
    elif [ -e "$peers" ] || step peers "$here/peers/build.sh" "$peers"; then
        arguments+=(--peers "$peers")
    fi
    # Where there is no PyTorch, its columns are left out.
    if "${PYTHON:-python3}" -c 'import torch' 2>/dev/null; then
        rm -f "$results/torch.json"
        step torch "${PYTHON:-python3}" "$here/peers/torch_peers.py" --log2 "${LOG2:-30}" --json "$results/torch.json" || true
        # If a row failed, the record says so.
        if [ -s "$results/torch.json" ]; then
            arguments+=(--torch "$results/torch.json")
        fi
    else
        echo "        no PyTorch in ${PYTHON:-python3}: its times are left out"
    fi
    while read -r program; do
        found=yes
        name="$(basename "$program")"
        json="$results/$name.json"
        rm -f "$json"
        step "bench $name" "$program" "${arguments[@]}" --commit "$(sed -n 's/^commit *//p' BUILD)" --json "$json" || continue
        sed 's/^/        /' "$results/bench-$name.log"
        # A benchmark without a GPU says so and ends well.
        [ -s "$json" ] || fail "bench $name" "no results"
        if "${PYTHON:-python3}" -c 'import matplotlib' 2>/dev/null; then
            step "report $name" "${PYTHON:-python3}" "$here/report.py" --json "$json" --out "$results"
        else
            echo "        no matplotlib in ${PYTHON:-python3}: no page and no plots"
        fi
    done < <(programs benches)
    [ "$found" = yes ] || fail bench "the bundle has none"
}

tune() {
    step tune "$here/benches/gpu" --only tune --tuning "$results/tuning.txt" --json "$results/tuning.json" &&
        sed -n '/^parameter/,$s/^/        /p' "$results/tune.log"
}

[ "$#" -gt 0 ] || usage
for what in "$@"; do
    case "$what" in
        tests | sanitize | quickstart | bench | tune | all) ;;
        *) usage ;;
    esac
done
mkdir -p "$results"
cd "$here" || exit 1
{
    cat BUILD
    echo "device  $KERNEL_PRIMITIVES_DEVICE"
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sed 's/^/gpu     /'
} | tee "$results/machine.txt"
for what in "$@"; do
    case "$what" in
        all)
            tests
            sanitize
            quickstart
            bench
            ;;
        *) "$what" ;;
    esac
done
echo
if [ "${#failures[@]}" -gt 0 ]; then
    echo "$passed passed, ${#failures[@]} failed:"
    printf '    %s\n' "${failures[@]}"
    exit 1
fi
echo "$passed passed, none failed"
RUN
chmod +x "$bundle/run"

size="$(du -sm "$bundle" | cut -f 1)"
find "$bundle"/{tests,examples,benches} -type f -printf '%P  %s bytes (%h)\n' | sort
echo "$bundle: $size MiB; copy it to the GPU machine and start ./run"
