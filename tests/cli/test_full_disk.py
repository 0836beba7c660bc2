"""A disk that fills costs no training: small file systems in memory, which grow while a run waits for space."""
import os
import re
import signal
import subprocess

import pytest

from conftest import PROGRAM, SLOWER, checkpoints, wait_for

SIZE = 300  # KiB: one checkpoint of the run below and its other files, but not two
MODEL = {"model": {"dim": "64"}, "train": {"epochs": "3", "held_out": "0"}, "run": {"checkpoint_every": "20 steps", "keep": "1"}}


@pytest.fixture
def disk(tmp_path):
    """A function that makes the file system tmp_path/disk, or gives it another size in KiB."""
    place = tmp_path / "disk"
    place.mkdir()

    def resize(size):
        options = f"size={size}k" if not os.path.ismount(place) else f"remount,size={size}k"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this user may not mount a file system: {done.stderr.strip()}")

    yield resize
    subprocess.run(["umount", "-l", place], capture_output=True)


def config(sptx, **sections):
    keys = {name: {**MODEL.get(name, {}), **sections.get(name, {})} for name in {**MODEL, **sections}}
    keys["run"].setdefault("dir", "disk/run")
    sptx.path("cache").mkdir(exist_ok=True)
    return sptx.config(**keys, corpus={"cache": "cache"})


def whole(sptx):
    sptx("train", config(sptx), "--run.dir=whole")
    return sptx.tables("whole")


@pytest.mark.parametrize("wait", ["yes", "no"])
def test_a_full_disk_passes_over_checkpoints_and_the_last_one_waits_for_space(sptx, disk, wait):
    wanted = whole(sptx)
    disk(SIZE)
    with open(sptx.path("err"), "w") as err:
        process = subprocess.Popen([PROGRAM, "train", config(sptx, run={"checkpoint_wait": wait})], cwd=sptx.directory, stderr=err)
        assert wait_for(lambda: "the last checkpoint is not written" in sptx.path("err").read_text(), process), sptx.path("err").read_text()
        first = checkpoints(sptx, "disk/run")
        disk(4 * SIZE)
        process.wait(60 * SLOWER)
    said = sptx.path("err").read_text()
    assert process.returncode == 0, said
    assert "checkpoint-20" in first and len(first) == 1
    assert "warning: checkpoint-40 is not written: cannot write 'disk/run/checkpoint-40.partial/" in said.replace(f"{sptx.directory}/", "")
    assert "No space left on device; " in said and " are missing; the older one stays, and training goes on" in said
    assert re.search(r"; it is tried again for (10m00|9m\d\d)s, or until Ctrl-C$", said, re.M)
    assert sptx.tables("disk/run") == wanted and len(checkpoints(sptx, "disk/run")) == 1


def test_ctrl_c_gives_the_last_checkpoint_up_and_the_older_one_stays(sptx, disk):
    wanted = whole(sptx)
    disk(SIZE)
    with open(sptx.path("err"), "w") as err:
        process = subprocess.Popen([PROGRAM, "train", config(sptx)], cwd=sptx.directory, stderr=err)
        assert wait_for(lambda: "the last checkpoint is not written" in sptx.path("err").read_text(), process)
        process.send_signal(signal.SIGINT)
        process.wait(60 * SLOWER)
    last = sptx.path("err").read_text().splitlines()[-1]
    assert process.returncode == 1 and last.startswith("sptx-w2v: cannot write '") and last.endswith(": No space left on device")
    assert checkpoints(sptx, "disk/run") == ["checkpoint-20"]
    disk(4 * SIZE)
    sptx("train", "run.ini", "--resume")
    assert sptx.tables("disk/run") == wanted


def test_nobody_waits_where_retry_seconds_is_0(sptx, disk):
    disk(SIZE)
    said = sptx.refuses("train", config(sptx, run={"retry_seconds": "0"}))
    assert said.startswith("cannot write '") and checkpoints(sptx, "disk/run") == ["checkpoint-20"]


def test_an_epoch_without_a_checkpoint_is_not_scored(sptx, disk):
    disk(SIZE)
    done = sptx("train", config(sptx, train={"patience": "5", "held_out": "0.1"}, 
                                      run={"retry_seconds": "0", "checkpoint_every": "end"}))
    assert done.stderr.count(" is not written: ") == 2 and "best       checkpoint-" in done.stderr
    assert len(checkpoints(sptx, "disk/run")) == 1


def test_the_plan_says_what_the_disk_needs_and_has(sptx, disk):
    disk(SIZE)
    plan = sptx("plan", config(sptx)).stdout
    assert "disk needed " in plan and f"of {SIZE} KiB free" in plan and "\nfits             yes\n" in plan
    said = sptx("plan", config(sptx, model={"dim": "640"}), expect=1)
    assert "\nfits             no: a checkpoint takes " in said.stdout
    assert said.stderr.splitlines()[-1].startswith("sptx-w2v: the run does not fit: a checkpoint takes ")
    assert sptx.refuses("train", "run.ini").startswith("a checkpoint of this run takes ")
    for run in "new", "deep/er/new", sptx.path("deep", "new"):  # on the disk of the nearest directory that is there
        assert "disk needed " in sptx("plan", "run.ini", f"--run.dir={run}").stdout


def test_an_export_to_a_full_disk_leaves_what_was_there(sptx, disk):
    sptx("train", config(sptx), "--run.dir=run")
    disk(400)
    sptx("export", "run", "--format=npy", "--out=disk/x.npy")
    before = sptx.path("disk/x.npy").read_bytes()
    disk(len(before) // 4096 * 4 + 8)  # whole pages, and one that is free
    for more in ["--format=npy"], ["--format=npy", "--type=int8", "--columns=60"], ["--format=projector"]:
        said = sptx.refuses("export", "run", *more, "--out=disk/x.npy")
        assert said == "cannot write 'disk/x.npy': No space left on device" or "disk/x.npy." in said
        assert sptx.path("disk/x.npy").read_bytes() == before and os.listdir(sptx.path("disk")) == ["x.npy"]
