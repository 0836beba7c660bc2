#!/usr/bin/env bash
# Tries the wheel of `make wheel` on this machine's GPU, as a user has it: installed by pip into a folder of its own, without the
# CUDA Toolkit in the path. Each build in the wheel trains and computes rows; the driver must be new enough for all of them.
#
#   scripts/try_wheel_gpu.sh [PYTHON]
#
# PYTHON (python3) must have pip and NumPy. With SPTX_BACKEND=cpu everything but the GPU is tried.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
python=$(realpath -s "$(command -v "${1:-python3}")")
device=${SPTX_BACKEND:-cuda}
wheel=$(realpath "$build"/wheel/sptx-*manylinux_*.whl 2>/dev/null) || { echo "try_wheel_gpu: 'make wheel' comes first" >&2; exit 1; }
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp corpora/tiny.txt "$place"
cd "$place"

# Programs are searched only in the system's folders, and no path of a library is set.
bare() {
    env -i PATH=/usr/bin:/bin HOME="$place" PYTHONPATH="$place/own" "$@"
}

"$python" -m pip install -q --disable-pip-version-check --no-index --no-deps --target own "$wheel"
bare "$python" -c 'from sptx import _build; print("the driver knows CUDA", _build.driver(), "and takes", _build.folder())'
package=$(bare "$python" -c 'import sptx; print(*sptx.__path__)')
for library in $(find "$package" -name libsptx.so | sort); do
    folder=$(dirname "$library")
    echo "== $folder"
    bare "$folder/sptx-w2v" --version
    bare "$folder/sptx-w2v" devices
    for update in batch hogwild; do
        bare "$folder/sptx-w2v" train --quiet --overwrite --corpus.path=tiny.txt --corpus.min_count=1 --run.dir=words \
            --train.update=$update --device.backend="$device"
    done
    bare "$folder/sptx-w2v" nearest words "$(sed -n 1p words/vocab.tsv | cut -f 1)" --k=3
    bare SPTX_LIBRARY="$library" "$python" - "$device" <<'PYTHON'
import sys
import numpy, sptx
rows, values = numpy.array([3, 99999, 3]), numpy.linspace(-1, 1, 3 * 64, dtype=numpy.float32).reshape(3, 64)
seen = []
for device in (sys.argv[1], "cpu"):
    with sptx.Table(100000, 64, "adam", lr=0.1, init="uniform -1 1", seed=5, device=device) as table:
        table.update(rows, values)
        seen.append(table.fetch(rows))
assert numpy.allclose(*seen, rtol=1e-5, atol=1e-6), abs(seen[0] - seen[1]).max()
PYTHON
done
echo "tried $(basename "$wheel") on $device"
