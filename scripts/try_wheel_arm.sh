#!/usr/bin/env bash
# Tries the wheel that `make python ARCH=aarch64` has made for 64-bit Arm: Debian's CPython for Arm, unpacked and not installed, passes a few of the Python
# tests with it; on another machine by qemu.
#
#   scripts/try_wheel_arm.sh [BUILD]     BUILD: build/aarch64
set -euo pipefail
cd "$(dirname "$0")/.."

build=$(realpath "${1:-build/aarch64}")
wheel=$(ls "$build"/sptx-*aarch64.whl 2>/dev/null) || { echo "try_wheel_arm: there is no $build/sptx-*aarch64.whl" >&2; exit 1; }
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
root=$build/root
if [ ! -x "$root/usr/bin/python$version" ]; then
    rm -rf "$root"
    mkdir -p "$root/debs"
    packages=(python"$version"-minimal libpython"$version"-minimal libpython"$version"-stdlib libexpat1 zlib1g libssl3 libffi8 libbz2-1.0 liblzma5
        libsqlite3-0 libc6 libgcc-s1 libstdc++6 libuuid1)
    (cd "$root/debs" && apt-get download -q "${packages[@]/%/:arm64}" >/dev/null 2>&1) ||
        { echo "try_wheel_arm: apt-get cannot download CPython $version for Arm" >&2; exit 1; }
    for package in "$root"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
fi
rm -rf "$root/site"
build/venv/bin/python -m pip install -q --disable-pip-version-check --target "$root/site" --only-binary :all: --python-version "$version" \
    --platform manylinux2014_aarch64 numpy==2.0.2 pytest==8.4.2 hypothesis==6.141.1
build/venv/bin/python -m zipfile -e "$wheel" "$root/site"
emulator=()
[ "$(uname -m)" = aarch64 ] || emulator=(qemu-aarch64 -L "$root")
PYTHONPATH=$root/site PYTHONDONTWRITEBYTECODE=1 "${emulator[@]}" "$root/usr/bin/python$version" -m pytest -q -p no:cacheprovider \
    -c tests/python/pytest.ini -m 'not torch and not gpu and not long' -k 'not numpy_alone' tests/python/test_views.py tests/python/test_table.py # numpy_alone starts a Python, without qemu
echo "tried $(basename "$wheel") with CPython $version for Arm"
