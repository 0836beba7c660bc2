"""Small runs must give the bytes in tests/record.tsv, for each number of threads and each level of processor. So a change of
results is noticed."""
import os
import subprocess

from conftest import PROGRAM, ROOT, SLOWER


def test_runs_give_the_bytes_of_the_record():
    done = subprocess.run([ROOT / "scripts" / "record_of_bytes", "--check"], env={**os.environ, "SPTX_BIN": PROGRAM}, timeout=300 * SLOWER,
                          capture_output=True, text=True)
    assert done.returncode == 0, "scripts/record_of_bytes --write makes a new record, and CHANGELOG says why:\n" + done.stdout + done.stderr


def test_a_level_is_chosen_by_name():
    def line(level):
        return subprocess.run([PROGRAM, "devices"], env={**os.environ, "SPTX_LEVEL": level}, capture_output=True, text=True).stdout

    assert "level base" in line("base") and line("no such level") == line("")
