"""Words, names and titles with control characters: a terminal gets them in a harmless form, a pipe gets their bytes."""
import os
import pty
import re
import subprocess

import pytest

from conftest import PROGRAM

# Control sequences: a new title of the terminal; a colour, by both forms of C1. Then letters, which must stay, some of them with
# bytes that C1 also has.
ODD = [b"\x1b]0;mine\x07", b"\x9b31mred", b"\xc2\x9b31mred", "Лев“café”".encode(), b"caf\xe9"]
SHOWN = [rb"\x1b]0;mine\x07", rb"\x9b31mred", rb"\u009b31mred", ODD[3], ODD[4]]


@pytest.fixture
def odd(sptx):
    lines = [b" ".join(ODD[(i + j) % 5] for j in range(4)) + b" plain" for i in range(400)]
    sptx.path("corpus.txt").write_bytes(b"\n".join(lines) + b"\n")
    # every word is trained, so there is no warning
    sptx("train", sptx.config(examples={"subsample": "0"}, optimizer={"clip": "1"}))
    sptx.path("titles.tsv").write_bytes(b"".join(word + b"\tA title \x1b[2J of " + word + b"\n" for word in ODD))
    sptx.path("lists.txt").write_bytes(b"list\x1b[1m plain " + ODD[0] + b"\n")
    return sptx


def on_terminal(sptx, *arguments):
    """Returns what a terminal gets on stdout and stderr."""
    main, side = pty.openpty()
    process = subprocess.Popen([PROGRAM, *map(os.fsencode, arguments)], cwd=sptx.directory, stdin=subprocess.DEVNULL, stdout=side,
                               stderr=side)
    os.close(side)
    got = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:  # the program has closed its end
            break
        if not piece:
            break
        got += piece
    os.close(main)
    assert not {0x1b, 0x07} & set(got), got
    lines = got.replace(b"\r\n", b"\n").splitlines(True)
    return process.wait(timeout=60), b"".join(line for line in lines if not line.startswith(b"columns    "))


def piped(sptx, *arguments):
    return subprocess.run([PROGRAM, *map(os.fsencode, arguments)], cwd=sptx.directory, capture_output=True, check=True).stdout


@pytest.mark.parametrize("arguments", [
    ["nearest", "run", "plain", "--titles=titles.tsv"], ["nearest", "run", "plain", b"caf\xe9"],
    ["analogy", "run", "plain", b"caf\xe9", "Лев“café”"],
    ["recommend", "run", "--lists=lists.txt", "--titles=titles.tsv", "--seen"]])
def test_what_a_terminal_would_obey_is_shown(odd, arguments):
    code, got = on_terminal(odd, *arguments)
    assert code == 0, got
    plain = piped(odd, *arguments)
    assert plain != got
    assert not {0x1b, 0x07, 0x9b} & set(got.replace(ODD[3], b"")), got  # a letter of ODD[3] contains the byte 0x9b
    shown = dict(zip(ODD, SHOWN))
    plain = re.sub(b"|".join(map(re.escape, sorted(ODD, key=lambda word: word[0] != 0xc2))), lambda m: shown[m[0]], plain)
    assert plain.replace(b"A title \x1b[2J", rb"A title \x1b[2J").replace(b"list\x1b[1m", rb"list\x1b[1m") == got


def test_what_a_pipe_gets_is_byte_for_byte(odd):
    words = {line.split(b"\t")[0] for line in piped(odd, "nearest", "run", "plain").splitlines()}
    assert words == set(ODD)


def test_json_is_ascii_where_a_terminal_would_obey(odd):
    out = piped(odd, "recommend", "run", "--lists=lists.txt", "--titles=titles.tsv", "--json", "--seen")
    assert rb"\u009b31mred" in out and rb"list\u001b[1m" in out
    assert b"\x1b" not in out and b"\xc2\x9b" not in out


def test_a_configuration_is_shown(sptx):
    arguments = ["config", b"--corpus.path=a\xc2\x9b2J b\x9b31m"]
    code, got = on_terminal(sptx, *arguments)
    assert code == 0 and rb"a\u009b2J b\x9b31m" in got
    assert got == piped(sptx, *arguments).replace(b"\xc2\x9b", rb"\u009b").replace(b"\x9b", rb"\x9b")


def test_sentences_have_no_escapes(odd):
    for word in (b"\x1b[2J!", b"\x9b2J!", b"\xc2\x9b2J!"):
        code, got = on_terminal(odd, "nearest", "run", word)
        assert code == 1
        assert got.startswith(b"sptx-w2v: '?") and b"2J!' is not in the vocabulary" in got
        assert not {0x1b, 0x9b} & set(got.replace(ODD[3], b""))


def test_the_word_itself_is_never_proposed(odd):
    odd.path("corpus.txt").write_bytes(b"one\0two three four\n" * 300)
    odd("train", odd.config(run={"dir": "nul"}))
    said = odd.refuses("nearest", "nul", "one")
    assert said == "'one' is not in the vocabulary of 'nul'"


# ---- a reader that has enough ----

@pytest.mark.parametrize("asked", ["yes t0w1 | {} distance v.txt", "yes t0w1 t0w2 t1w1 | {} word-analogy v.txt",
                                   "{} export run --format=glove-text --out=/dev/stdout", "{} phrases corpus.txt --threshold=1e9",
                                   "{} nearest run t0w1 t0w2 --k=100000"])
def test_a_command_whose_reader_has_gone_ends_without_a_word(trained, asked):
    """`head` closes its end of the pipe before the command writes: the command ends as SIGPIPE ends other programs."""
    trained("export", "run", "--format=word2vec-text", "--out=v.txt")
    with open(trained.path("corpus.txt"), "a") as file:  # more than a pipe holds
        file.writelines(f"t0w1 t0w2 t1w1 word{i}\n" for i in range(20000))
    command = "(" + asked.format(f"timeout 60 '{PROGRAM}' --quiet") + '; echo "$?" >code) | true; cat code'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command.replace("(", "(sleep 0.1; ", 1)], cwd=trained.directory,
                          capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("141\n", "")
