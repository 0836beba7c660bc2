"""Commands write only the files that they are asked for. All other files, whether there before or beside them, stay as they are."""
import os
import stat
import subprocess

import pytest

from conftest import PROGRAM


def listing(directory):
    return sorted(os.listdir(directory))


def export(trained, out, **options):
    return trained("export", "run", "--format=npy", f"--out={out}", **options)


@pytest.fixture
def wanted(trained):
    """Returns the bytes that the export should write."""
    export(trained, "wanted.npy")
    return trained.path("wanted.npy").read_bytes()


def test_a_file_named_as_a_piece_could_be_stays(trained, wanted):
    trained.path("out.npy.partial").write_text("the user's")
    export(trained, "out.npy")
    assert trained.path("out.npy").read_bytes() == wanted
    assert trained.path("out.npy.partial").read_text() == "the user's"


def test_a_link_stays_and_its_target_is_written(trained, wanted):
    trained.path("elsewhere").mkdir()
    trained.path("old.npy").write_text("old")
    for link, target in (("link.npy", "old.npy"), ("new.npy", "elsewhere/new.npy")):
        trained.path(link).symlink_to(target)
        before = listing(trained.directory)
        export(trained, link)
        assert trained.path(link).is_symlink() and os.readlink(trained.path(link)) == target
        assert trained.path(target).read_bytes() == wanted
        assert listing(trained.directory) == before
    assert listing(trained.path("elsewhere")) == ["new.npy"]


def test_rights_are_kept(trained):
    export(trained, "out.npy", umask=0o027)
    assert stat.S_IMODE(trained.path("out.npy").stat().st_mode) == 0o640
    trained.path("out.npy").chmod(0o604)
    export(trained, "out.npy", umask=0o077)
    assert stat.S_IMODE(trained.path("out.npy").stat().st_mode) == 0o604


def test_standard_output(trained, wanted):
    done = subprocess.run([PROGRAM, "export", "run", "--format=npy", "--out=/dev/stdout"], cwd=trained.directory,
                          capture_output=True, check=True)
    assert done.stdout == wanted
    for mode, before in (("wb", b""), ("ab", b"before")):  # as the shell opens > file and >> file
        trained.path("all").write_bytes(b"before")
        with open(trained.path("all"), mode) as file:
            subprocess.run([PROGRAM, "export", "run", "--format=npy", "--out=/dev/stdout"], cwd=trained.directory,
                           stdout=file, stderr=subprocess.DEVNULL, check=True)
        assert trained.path("all").read_bytes() == before + wanted


def test_a_command_that_reads(trained, wanted):
    subprocess.run(["bash", "-c", f"'{PROGRAM}' export run --format=npy --out=>(cat > copy); wait $!"],
                   cwd=trained.directory, capture_output=True, check=True)
    assert trained.path("copy").read_bytes() == wanted
    os.mkfifo(trained.path("pipe"))
    reader = subprocess.Popen(["cat", "pipe"], cwd=trained.directory, stdout=subprocess.PIPE)
    export(trained, "pipe")
    assert reader.communicate()[0] == wanted
    assert stat.S_ISFIFO(trained.path("pipe").stat().st_mode)
    assert trained.refuses("export", "run", "--format=npy", "--out=pipe") == \
        "'pipe' is a pipe that nothing reads: start its reader first"


@pytest.mark.parametrize("out, sentence", [
    ("/dev/full", "cannot write '/dev/full': No space left on device"),
    ("run", "cannot write 'run': it is no plain file but a directory"),
    ("new/", "cannot write 'new/': Is a directory"),
    ("absent/out", "cannot write 'absent/out': No such file or directory"),
])
def test_places_that_take_nothing(trained, out, sentence):
    before = listing(trained.directory)
    assert trained.refuses("export", "run", "--format=npy", f"--out={out}") == sentence
    assert listing(trained.directory) == before


def test_a_format_of_two_files_wants_files(trained):
    assert trained.refuses("export", "run", "--format=projector", "--out=/dev/stdout") == \
        "cannot write '/dev/stdout': it is no plain file but a pipe"
    assert not os.path.exists("/dev/stdout.metadata.tsv")
