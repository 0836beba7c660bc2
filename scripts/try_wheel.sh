#!/usr/bin/env bash
# Tries the wheel of `make wheel` as a user has it: in a fresh root of this distribution, with Python but without a compiler, headers
# or this build. There it is installed by pip, and trains, searches, exports and makes a page, from Python and by the program.
#
#   scripts/try_wheel.sh [ROOT]
#
# ROOT is the directory of the fresh root (default: BUILD/root). If it is missing, debootstrap makes it, in a minute or two, as root.
# SUITE=sid in the environment names another suite of Debian, NUMPY=numpy==2.4.1 another NumPy.
# If the trial cannot be made, the script says why in a sentence and exits with 3.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
root=${1:-$build/root}
numpy=${NUMPY:-numpy==2.2.6}
PATH=$PATH:/usr/sbin:/sbin

leave_out() {
    echo "try_wheel: left out: $*" >&2
    exit 3
}

make_root() {
    local codename suite mirror
    [ "$(id -u)" -eq 0 ] || leave_out "only root can make a fresh root"
    command -v debootstrap >/dev/null || leave_out "there is no debootstrap; scripts/setup.sh --wheel brings it"
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
    suite=${SUITE:-$codename}
    # shellcheck disable=SC2016 # apt's own variable
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $codename" | head -n 1)
    rm -rf "$root.part"
    debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$root.part" ${mirror:+"$mirror"} >"$root.log" 2>&1 ||
        leave_out "debootstrap cannot make a root of $suite: $(tail -n 1 "$root.log")"
    mv "$root.part" "$root"
}

# Runs a command in the fresh root; it gets its own /proc if this machine permits it.
inside() {
    if unshare --mount --pid --fork true 2>/dev/null; then
        unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" "$@"
    else
        chroot "$root" "$@"
    fi
}

# Copies NumPy from outside, so that the root needs no network.
bring_packages() {
    local version
    version=$(inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    rm -rf "$root/try"
    mkdir -p "$root/try/wheels"
    cp "$wheel" "$root/try/wheels"
    "$build/venv-wheel/bin/python" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
        --python-version "$version" --platform "manylinux2014_$(uname -m)" --platform "manylinux_2_27_$(uname -m)" --platform "manylinux_2_28_$(uname -m)" -d "$root/try/wheels" $numpy ||
        leave_out "pip cannot download NumPy"
    cp corpora/friends.lists corpora/tiny.txt "$root/try"
}

wheel=$(ls "$build"/wheel/sptx-*manylinux_*.whl 2>/dev/null) || { echo "try_wheel: 'make wheel' comes first" >&2; exit 1; }
[ -x "$root/usr/bin/python3" ] || make_root
bring_packages
cat >"$root/try/steps.sh" <<'END'
set -euo pipefail
cd /try
export PATH=/usr/bin:/bin HOME=/try LC_ALL=C PIP_CONFIG_FILE=/dev/null
unset PIP_FIND_LINKS
for tool in cc gcc make mpirun nvcc; do if command -v $tool; then echo "this root has $tool"; exit 1; fi; done
python3 -m venv own
own/bin/pip install -q --disable-pip-version-check --no-index --find-links wheels sptx
PATH=/try/own/bin:$PATH
python3 - <<'PYTHON'
import sptx
sptx.train(keys={"corpus.path": "tiny.txt", "corpus.min_count": 1, "model.dim": 8, "run.dir": "of-python", "device.threads": 1})
run = sptx.Run("of-python")
assert len(run.nearest(run.words[0], k=3)) == 3
lists = {"ann": ["milk", "bread", "jam"], "ben": ["bread", "jam", "tea"], "cora": ["milk", "tea", "jam"]}
run = sptx.fit(lists, "of-data", dim=8, epochs=2, threads=1, progress=False)
assert len(run.recommend(["bread"], k=2)) == 2
assert sptx._compiled.known is not None, "the calls of rows are not the compiled ones"
books = sptx.Table(rows=100, dim=4, optimizer="adam")
books.update([3, 3], [[1, 1, 1, 1]] * 2)
PYTHON
sptx-w2v --version
python3 -m sptx train --quiet --corpus.path=friends.lists --corpus.format=lists --run.dir=of-lists
sptx-w2v train --quiet --corpus.path=tiny.txt --corpus.min_count=1 --run.dir=of-text
sptx-w2v nearest of-text "$(sed -n 1p of-text/vocab.tsv | cut -f 1)" --k=3
sptx-w2v export of-text --format=word2vec-bin --out=text.bin
sptx-w2v report of-text --out=text.html
if OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 sptx-w2v train --corpus.path=tiny.txt --run.dir=ranks 2>said; then exit 1; fi
grep -q '^sptx-w2v: mpirun began 2 of these processes' said
test -s text.bin -a -s text.html
END
began=$SECONDS
inside bash /try/steps.sh
echo "tried $(basename "$wheel") in $(. "$root/etc/os-release" && echo "$PRETTY_NAME"): $((SECONDS - began)) s"
