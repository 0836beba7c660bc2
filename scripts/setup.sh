#!/usr/bin/env bash
# Installs what is missing to build sptx-w2v on Debian or Ubuntu, then lists what is there.
#
#   scripts/setup.sh            compiler, make, libraries and Open MPI (for training over several processes)
#   scripts/setup.sh --look     installs nothing: prints what is missing to compile, and exits with 1 if something is
#   scripts/setup.sh --tests    also cmocka, python3 and its headers, hnswlib, fasttext, PyTorch for the CPU, a Chromium without
#                               windows (98 MB on Debian; tests the page of `report`), and two virtual environments under $BUILD:
#                               venv (packages: tests/requirements.txt), and venv-torch with PyTorch (packages:
#                               tests/python/requirements-torch.txt). The Python package is installed and tested in both
#   scripts/setup.sh --docs     also the virtual environments venv, as --tests makes it (code in the pages uses its packages), and
#                               venv-docs with Sphinx (packages: src/docs/requirements.txt)
#   scripts/setup.sh --fuzz     also cmocka, and clang with libFuzzer
#   scripts/setup.sh --arm      also a compiler for 64-bit Arm, cmocka and libraries for Arm, and qemu, which runs Arm programs;
#                               none of these on a machine that is 64-bit Arm itself
#   scripts/setup.sh --wheel    also python3's headers, MPICH beside Open MPI, since the wheel serves both, debootstrap, with which
#                               the wheel is tried on a bare system, and venv-wheel (pins: scripts/requirements-wheel.txt). On
#                               Debian 12, where nvcc is and CUDA=no is not set, also an older CUDA Toolkit beside it
#                               (scripts/cuda_11.sh) and g++-11
#
# The script asks no questions. If nothing is missing, it uses neither apt nor the network.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
cuda_11=$build/cuda11/toolkit
system_python=/usr/bin/python3 # of the distribution's Python packages, whatever python3 is
tests=no docs=no fuzz=no wheel=no look=no arm=no
case "${1-}" in
    '') ;;
    --look) look=yes ;;
    --tests) tests=yes ;;
    --docs) docs=yes ;;
    --fuzz) fuzz=yes ;;
    --wheel) wheel=yes ;;
    --arm) arm=yes ;;
    *) echo "setup: '$1' is not an option; wanted nothing, --look, --tests, --docs, --fuzz, --arm or --wheel" >&2; exit 2 ;;
esac

stop() {
    echo "setup: $*" >&2
    exit 1
}

# name | package | header | library: present if a program that includes the header and links the library compiles
libraries='inih|libinih-dev|ini.h|inih
random123|librandom123-dev|Random123/philox.h|
zlib|zlib1g-dev|zlib.h|z
zstd|libzstd-dev|zstd.h|zstd
xz|liblzma-dev|lzma.h|lzma
bzip2|libbz2-dev|bzlib.h|
xxhash|libxxhash-dev|xxhash.h|xxhash'
if [ $tests = yes ] || [ $fuzz = yes ] || [ $arm = yes ]; then
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

# Looks for an MPI, by the same names as the Makefile.
has_mpi() {
    local name
    has_command mpirun && for name in ompi-c mpi-c ompi mpich mpi; do
        pkg-config --exists "$name" 2>/dev/null && return
    done
    return 1
}

# Looks for the headers with which the C module of the Python package is compiled.
has_python_headers() {
    [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)/Python.h" ]
}

has_venv_module() {
    python3 -c 'import venv, ensurepip' >/dev/null 2>&1
}

# hnswlib comes from the distribution and is not in the venv, where it would have to be compiled.
# It needs the distribution's NumPy.
has_hnswlib() {
    "$system_python" -c 'import hnswlib, numpy' >/dev/null 2>&1
}

# PyTorch is installed from the distribution, too: its build is for the CPU, and a download of 140 MB.
# The wheels of the package index need gigabytes of CUDA's libraries, even on the CPU.
has_torch() {
    "$system_python" -c 'import torch' >/dev/null 2>&1
}

# Newer releases of Ubuntu have no PyTorch. Tests that need it are then left out, unless $system_python has one;
# scripts/check says so.
torch_packages() {
    if ! has_torch && (. /etc/os-release && [ "$ID" = debian ]); then echo python3-torch; fi
}

# Looks for a browser, by the same names as tests/cli/browser.py. Ubuntu's browser is a snap: it does not run in a container,
# and may be unable to read a test's files. Tests in a browser are then left out, unless there is another browser; they say so.
has_browser() {
    local name
    for name in chromium-headless-shell chromium chromium-browser google-chrome; do
        case $(readlink -f "$(command -v "$name" 2>/dev/null)") in '' | */snap*) ;; *) return ;; esac
    done
    return 1
}

browser_packages() {
    if ! has_browser && (. /etc/os-release && [ "$ID" = debian ] && [ "${VERSION_ID:-99}" -ge 12 ]); then
        echo chromium-headless-shell
    fi
}

# Prints the package of fastText, with which tests of n-grams compare; without it these tests are left out, and say so.
fasttext_packages() {
    if ! has_command fasttext && (. /etc/os-release && [ "$ID" = debian ]); then echo fasttext; fi
}

has_fuzzer() {
    printf 'int LLVMFuzzerTestOneInput(const char *bytes, unsigned long length) { return 0; }\n' |
        clang -x c - -fsanitize=fuzzer,address,undefined -o /dev/null >/dev/null 2>&1
}

# Prints the package that contains libFuzzer: clang in Ubuntu 22.04 and before, a separate one in later versions.
fuzzer_packages() {
    has_fuzzer && return
    case $(. /etc/os-release && echo "$ID ${VERSION_ID-}") in
        'ubuntu 2'[0-2]*) echo clang ;;
        *) echo clang libclang-rt-dev ;;
    esac
}

nvcc_here() {
    command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null
}

# True if the wheel is also built with the older Toolkit, which only Debian 12 has.
wants_cuda_11() {
    [ "${CUDA-}" != no ] && nvcc_here >/dev/null && (. /etc/os-release && [ "$ID ${VERSION_ID-}" = 'debian 12' ])
}

cuda_11_ready() {
    "$cuda_11/bin/nvcc" --version >/dev/null 2>&1
}

wheel_packages() {
    if wants_cuda_11 && ! has_command g++-11; then echo g++-11; fi
    pkg-config --exists mpich 2>/dev/null || echo libmpich-dev
    has_command debootstrap || [ -x /usr/sbin/debootstrap ] || echo debootstrap
    has_venv_module || echo python3-venv
    has_python_headers || echo python3-dev
}

arm_compiler=aarch64-linux-gnu-gcc

# Prints the packages that are missing to build for 64-bit Arm on another machine, and to run the result. Random123 consists of
# headers, which are the same for all machines.
arm_packages() {
    local package header library
    [ "$(uname -m)" = aarch64 ] && return
    has_command $arm_compiler || echo crossbuild-essential-arm64
    has_command qemu-aarch64 || echo qemu-user
    [ -e /lib/aarch64-linux-gnu/libbz2.so.1.0 ] || echo libbz2-1.0:arm64 # which the program loads when it needs it
    while IFS='|' read -r _ package header library; do
        [ -z "$library" ] || compiler=$arm_compiler has_library "$header" "$library" || echo "$package:arm64"
    done <<<"$libraries"
}

# Prints the Debian packages that are missing to compile anything at all.
needed_packages() {
    has_command "$compiler" || echo build-essential
    has_command make || echo make
    while IFS='|' read -r _ package header library; do
        has_library "$header" "$library" || echo "$package"
    done <<<"$libraries"
}

missing_packages() {
    needed_packages
    has_command pkg-config || echo pkg-config
    has_mpi || echo libopenmpi-dev openmpi-bin
    if { [ $tests = yes ] && ! tests_venv_ready; } || { [ $docs = yes ] && ! docs_venvs_ready; }; then
        has_command python3 || echo python3
        has_venv_module || echo python3-venv
    fi
    if [ $fuzz = yes ]; then fuzzer_packages; fi
    if [ $wheel = yes ]; then wheel_packages; fi
    if [ $arm = yes ]; then arm_packages; fi
    if [ $tests = yes ]; then has_python_headers || echo python3-dev; fi
    if [ $tests = yes ]; then has_hnswlib || echo python3-hnswlib python3-numpy; fi
    if [ $tests = yes ]; then torch_packages; browser_packages; fasttext_packages; fi
}

venv_ready() { # folder pins modules
    [ -x "$1/bin/python" ] && cmp -s "$2" "$1/requirements.txt" && "$1/bin/python" -c "import $3" >/dev/null 2>&1
}
tests_venv_ready() {
    venv_ready "$build/venv" tests/requirements.txt "faiss, gensim, hypothesis, matplotlib, mypy, networkx, numpy, pandas, polars, \
        pyarrow, pytest, safetensors, sklearn"
}
docs_venvs_ready() {
    tests_venv_ready && venv_ready "$build/venv-docs" src/docs/requirements.txt 'furo, myst_parser, sphinx'
}
wheel_venv_ready() {
    venv_ready "$build/venv-wheel" scripts/requirements-wheel.txt 'auditwheel, setuptools'
}
torch_venv_ready() {
    venv_ready "$build/venv-torch" tests/python/requirements-torch.txt 'hypothesis, pytest, tokenizers, torch'
}

# Runs a command, and prints its output only if it fails. Prints the elapsed seconds every 20 seconds.
quietly() {
    local said clock code=0 began=$SECONDS
    (while sleep 20 >/dev/null 2>&1; do echo "setup:   $((SECONDS - began)) s"; done) &
    clock=$!
    said=$("$@" </dev/null 2>&1) || code=$?
    kill $clock
    [ $code -eq 0 ] || printf '%s\n' "$said" >&2
    return $code
}

install_packages() {
    local as_root=()
    has_command apt-get || stop "missing: $*; this script installs with apt-get, which is not here: install them by hand"
    if [ "$(id -u)" -ne 0 ]; then
        has_command sudo || stop "missing: $*; to install them run as root: apt-get install $*"
        as_root=(sudo)
    fi
    echo "setup: installing $*"
    case "$*" in *:arm64*) quietly "${as_root[@]}" dpkg --add-architecture arm64 || stop "dpkg --add-architecture arm64 failed" ;; esac
    quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
        stop "apt-get update failed; needed are: $*"
    quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
        -o APT::Keep-Downloaded-Packages=false "$@" ||
        stop "apt-get could not install: $*"
}

make_venv() { # folder pins
    echo "setup: making $1 with the packages of $2"
    mkdir -p "$build"
    rm -rf "$1"
    quietly python3 -m venv "$1" || stop "python3 -m venv $1 failed"
    quietly "$1/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir -r "$2" ||
        stop "pip could not install the packages of $2 into $1"
    cp "$2" "$1/requirements.txt"
}

# Makes a Python environment that also finds the distribution's packages. It has no pip of its own: that of build/venv installs into it.
make_torch_venv() {
    local folder=$build/venv-torch pins=tests/python/requirements-torch.txt
    echo "setup: making $folder with the packages of $pins"
    rm -rf "$folder"
    quietly "$system_python" -m venv --without-pip --system-site-packages "$folder" ||
        stop "$system_python -m venv $folder failed"
    quietly "$build/venv/bin/python" -m pip --python "$folder/bin/python" install -q --disable-pip-version-check --no-cache-dir -r "$pins" ||
        stop "pip could not install the packages of $pins into $folder"
    cp "$pins" "$folder/requirements.txt"
}

bring_cuda_11() {
    echo "setup: unpacking CUDA 11.8 into $cuda_11 (860 MB to fetch)"
    quietly scripts/cuda_11.sh "$cuda_11" || stop "scripts/cuda_11.sh $cuda_11 failed; CUDA=no leaves GPUs out of the wheel"
}

make_venvs() {
    tests_venv_ready || make_venv "$build/venv" tests/requirements.txt
    if has_torch && ! torch_venv_ready; then make_torch_venv; fi
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
    line MPI "$(mpirun --version 2>/dev/null | head -n 1)"
    if [ $tests = yes ]; then
        line hnswlib "$(has_hnswlib && echo found || echo MISSING)"
        line Chromium "$(has_browser && echo found || echo 'not found: the page of report is not tried in a browser')"
        line fastText "$(has_command fasttext && echo found || echo 'not found: words with n-grams are tried without their peer')"
        line PyTorch "$(has_torch && echo found || echo 'not found: sptx.torch is not tried')"
        line python "$("$build/venv/bin/python" -c 'import gensim, numpy, platform
print(platform.python_version(), "with gensim", gensim.__version__, "and numpy", numpy.__version__)')"
    fi
    if [ $arm = yes ] && [ "$(uname -m)" != aarch64 ]; then line 'for Arm' "$($arm_compiler --version | head -n 1)"; fi
    if [ $fuzz = yes ]; then line libFuzzer "$(clang --version | head -n 1)"; fi
    nvcc=$(nvcc_here || true)
    if [ $wheel = yes ] && [ -n "$nvcc" ]; then
        line 'older CUDA' "$(cuda_11_ready && echo 'nvcc 11.8' || echo 'not found: the wheel wants a driver of the CUDA below')"
    fi
    line CUDA "$([ -n "$nvcc" ] && "$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/nvcc \1/p' || echo 'no nvcc: CPU only')"
}

if [ $look = yes ]; then
    packages=$(needed_packages)
    [ -z "$packages" ] && exit
    # shellcheck disable=SC2086 # $packages holds several package names
    echo "what is missing to compile, by the names of Debian's packages:" $packages"; scripts/setup.sh installs it on Debian and Ubuntu"
    exit 1
fi
packages=$(missing_packages)
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086
    install_packages $packages
    packages=$(missing_packages)
    [ -z "$packages" ] || stop "still missing after installing: $(echo $packages)"
fi
if [ $tests = yes ]; then make_venvs; fi
if [ $docs = yes ] && ! docs_venvs_ready; then
    tests_venv_ready || make_venv "$build/venv" tests/requirements.txt
    make_venv "$build/venv-docs" src/docs/requirements.txt
fi
if [ $wheel = yes ] && wants_cuda_11 && ! cuda_11_ready; then bring_cuda_11; fi
if [ $wheel = yes ] && ! wheel_venv_ready; then make_venv "$build/venv-wheel" scripts/requirements-wheel.txt; fi
show
