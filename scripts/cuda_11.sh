#!/usr/bin/env bash
# Unpacks CUDA Toolkit 11.8, the oldest that compiles the kernels; its programs run with drivers from version 450 on.
#
#   scripts/cuda_11.sh DIR
#
# It is Debian 12's own (component non-free). apt fetches it, 860 MB, by a list of sources that is used here alone, and with the keys
# that this system trusts. Of its packages only what compiles and links the kernels is unpacked, 100 MB, as NVIDIA lays out a Toolkit:
# installed, they would take gigabytes and become the system's nvcc. Its host compiler is g++-11. Root is not needed.
set -euo pipefail

into=${1:?"scripts/cuda_11.sh wants the folder to unpack to"}
packages='nvidia-cuda-toolkit nvidia-cuda-dev libcu++-dev libcub-dev libthrust-dev'

apt_here() {
    apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$work/lists" \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}

fetch() {
    local site
    # shellcheck disable=SC2016 # apt's own variable
    site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Codename: bookworm' | head -n 1)
    [ -n "$site" ] || { echo "cuda_11: apt reads no packages of Debian 12 here" >&2; exit 1; }
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    echo "deb $site bookworm main non-free" >"$work/sources.list"
    apt_here update
    # shellcheck disable=SC2086
    (cd "$work" && apt_here download $packages)
}

# Unpacks files of a package. Packages are named without version; `levels` folders are removed from the front of paths.
unpack() { # package folder levels member..
    mkdir -p "$new/$2"
    dpkg-deb --fsys-tarfile "$work/$1"_*.deb | tar x -C "$new/$2" --strip-components="$3" "${@:4}"
}

lay_out() {
    local name
    unpack nvidia-cuda-toolkit bin 3 ./usr/bin/cudafe++ ./usr/bin/ptxas ./usr/bin/fatbinary
    unpack nvidia-cuda-toolkit bin 5 ./usr/lib/nvidia-cuda-toolkit/bin
    unpack nvidia-cuda-toolkit nvvm 4 ./usr/lib/nvidia-cuda-toolkit/libdevice
    unpack nvidia-cuda-dev . 2 --wildcards ./usr/include './usr/lib/*/libcudart_static.a'
    mkdir "$new/lib64"
    mv "$new"/lib/*/libcudart_static.a "$new/lib64"
    rm -r "${new:?}/lib" "$new/bin/nvcc.profile"
    for name in libcu++-dev libcub-dev libthrust-dev; do unpack "$name" . 2 ./usr/include; done
    for name in nvidia-cuda-toolkit libcu++-dev libcub-dev libthrust-dev; do
        unpack "$name" . 2 "./usr/share/doc/$name/copyright"
    done
    # makes gcc and g++ of this folder call the host compiler
    cat >"$new/bin/nvcc.profile" <<'END'
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/bin:
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64"
END
}

mkdir -p "$into.part"
new=$(realpath "$into.part")
work=$(mktemp -d)
trap 'rm -rf "$work" "$new"' EXIT
fetch
lay_out
"$new/bin/nvcc" --version >/dev/null
rm -rf "$into"
mv "$new" "$into"
