#!/usr/bin/env bash
# Brings what is missing to build sptx-w2v on Debian or Ubuntu, then says what is there.
#
#   scripts/setup.sh            compiler, make and libraries
#   scripts/setup.sh --tests    also cmocka, python3, hnswlib and $BUILD/venv (pins: tests/cli/requirements.txt)
#   scripts/setup.sh --fuzz     also cmocka, and clang with libFuzzer
#
# Asks nothing. Where everything is there it touches nothing, neither apt nor the network.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
pins=tests/cli/requirements.txt
system_python=/usr/bin/python3 # of the distribution's Python packages, whatever python3 is
tests=no fuzz=no
case "${1-}" in
    '') ;;
    --tests) tests=yes ;;
    --fuzz) fuzz=yes ;;
    *) echo "setup: '$1' is not an option; wanted nothing, --tests or --fuzz" >&2; exit 2 ;;
esac

stop() {
    echo "setup: $*" >&2
    exit 1
}

# name | package | header | library: found where a program that includes and links it compiles, wherever it came from
libraries='inih|libinih-dev|ini.h|inih
random123|librandom123-dev|Random123/philox.h|
zlib|zlib1g-dev|zlib.h|z
zstd|libzstd-dev|zstd.h|zstd
xxhash|libxxhash-dev|xxhash.h|xxhash
openblas|libopenblas-dev|cblas.h|openblas'
if [ $tests = yes ] || [ $fuzz = yes ]; then
    libraries="$libraries
cmocka|libcmocka-dev|cmocka.h|cmocka"
fi

compiler=${CC:-cc}

has_command() {
    command -v "$1" >/dev/null 2>&1
}

has_library() { # header library
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <%s>\nint main(void) { return 0; }\n' "$1" |
        "$compiler" -x c -std=gnu11 - ${2:+-l"$2"} -o /dev/null >/dev/null 2>&1
}

has_venv_module() {
    python3 -c 'import venv, ensurepip' >/dev/null 2>&1
}

# Not in the venv: there it would have to be compiled, and the distribution's is built for the distribution's NumPy.
has_hnswlib() {
    "$system_python" -c 'import hnswlib, numpy' >/dev/null 2>&1
}

has_fuzzer() {
    printf 'int LLVMFuzzerTestOneInput(const char *bytes, unsigned long length) { return 0; }\n' |
        clang -x c - -fsanitize=fuzzer,address,undefined -o /dev/null >/dev/null 2>&1
}

# What has libFuzzer: clang's own package in Ubuntu 22.04 and before, one beside it since.
fuzzer_packages() {
    has_fuzzer && return
    case $(. /etc/os-release && echo "$ID ${VERSION_ID-}") in
        'ubuntu 2'[0-2]*) echo clang ;;
        *) echo clang libclang-rt-dev ;;
    esac
}

missing_packages() {
    has_command "$compiler" || echo build-essential
    has_command make || echo make
    has_command pkg-config || echo pkg-config
    while IFS='|' read -r _ package header library; do
        has_library "$header" "$library" || echo "$package"
    done <<<"$libraries"
    if [ $tests = yes ] && ! has_venv_ready; then
        has_command python3 || echo python3
        has_venv_module || echo python3-venv
    fi
    if [ $fuzz = yes ]; then fuzzer_packages; fi
    if [ $tests = yes ]; then has_hnswlib || echo python3-hnswlib python3-numpy; fi
}

has_venv_ready() {
    [ -x "$build/venv/bin/python" ] && cmp -s "$pins" "$build/venv/requirements.txt" &&
        "$build/venv/bin/python" -c 'import faiss, gensim, matplotlib, numpy, pytest, safetensors, sklearn' >/dev/null 2>&1
}

# Runs quietly; what the command said is shown only where it fails.
quietly() {
    local said
    if ! said=$("$@" </dev/null 2>&1); then
        printf '%s\n' "$said" >&2
        return 1
    fi
}

install_packages() {
    local as_root=()
    has_command apt-get || stop "missing: $*; this script installs with apt-get, which is not here: install them by hand"
    if [ "$(id -u)" -ne 0 ]; then
        has_command sudo || stop "missing: $*; to install them run as root: apt-get install $*"
        as_root=(sudo)
    fi
    echo "setup: installing $*"
    quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
        stop "apt-get update failed; needed are: $*"
    quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" ||
        stop "apt-get could not install: $*"
}

make_venv() {
    has_venv_ready && return
    echo "setup: making $build/venv with the packages of $pins"
    mkdir -p "$build"
    rm -rf "$build/venv"
    quietly python3 -m venv "$build/venv" || stop "python3 -m venv $build/venv failed"
    quietly "$build/venv/bin/python" -m pip install -q --disable-pip-version-check -r "$pins" ||
        stop "pip could not install the packages of $pins into $build/venv"
    cp "$pins" "$build/venv/requirements.txt"
}

line() {
    printf '  %-10s %s\n' "$1" "$2"
}

show() {
    local name header library nvcc
    line compiler "$("$compiler" --version | head -n 1)"
    while IFS='|' read -r name _ header library; do
        has_library "$header" "$library" && line "$name" "found" || line "$name" "MISSING"
    done <<<"$libraries"
    if [ $tests = yes ]; then
        line hnswlib "$(has_hnswlib && echo found || echo MISSING)"
        line python "$("$build/venv/bin/python" -c 'import gensim, numpy, platform
print(platform.python_version(), "with gensim", gensim.__version__, "and numpy", numpy.__version__)')"
    fi
    if [ $fuzz = yes ]; then line libFuzzer "$(clang --version | head -n 1)"; fi
    nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
    line CUDA "$([ -n "$nvcc" ] && "$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/nvcc \1/p' || echo 'no nvcc: CPU only')"
}

packages=$(missing_packages)
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086
    install_packages $packages
    packages=$(missing_packages)
    [ -z "$packages" ] || stop "still missing after installing: $(echo $packages)"
fi
if [ $tests = yes ]; then make_venv; fi
show
