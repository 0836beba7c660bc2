"""The manual page and the completion for shells, which the program prints from its table of commands."""
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAM


def commands(sptx):
    return re.findall(r"^  (\w+) +\S", sptx("help").stdout, re.M)


def kinds(command):
    """bench measures several things, each with options of its own."""
    return [["transfer"], ["train"], ["memory"]] if command == "bench" else [[]]


def words_of(sptx, command):
    """Returns the options and keys that completion offers for a command."""
    return re.search(rf"^        {command}\) offered='(.*)' ;;$", sptx("help", "bash").stdout, re.M).group(1).split()


def bash(sptx, *typed):
    """Returns what bash offers for the last word, which is only half typed. As in a shell, '=' is a word of its own."""
    words = " ".join(f"'{word}'" for word in ("sptx-w2v", *typed))
    script = f"source <({PROGRAM} help bash); COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _sptx_w2v; echo \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=sptx.directory)
    return done.stdout.split()


def test_the_page_has_all_that_help_says(sptx):
    page = sptx("help", "man").stdout
    assert page.startswith(".TH SPTX\\-W2V 1 ")
    text = page.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
    for command in commands(sptx):
        usage, summary, said = sptx("help", command).stdout.split("\n\n", 2)
        assert usage in text and summary in text and said.rstrip("\n") in text, command
    assert sptx("help", "keys").stdout in text


@pytest.mark.skipif(not shutil.which("groff"), reason="there is no groff here")
def test_groff_has_nothing_to_say_about_the_page(sptx):
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-rLL=200n"], input=sptx("help", "man").stdout, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert "--checkpoint" not in done.stdout and "sptx-w2v trains" in re.sub(r"\x1b\[\d*m", "", done.stdout)


def test_bash_completes_commands_options_keys_and_values(sptx):
    assert bash(sptx, "tr") == ["train"]
    assert bash(sptx, "help", "near") == ["nearest"]
    assert bash(sptx, "train", "--over") == ["--overwrite", "--overwrite="]
    assert bash(sptx, "train", "--model.d") == ["--model.dim="]
    assert bash(sptx, "train", "--device.backend", "=", "cu") == ["cuda"]
    assert bash(sptx, "train", "--optimizer.nesterov", "=") == ["yes", "no"]
    assert bash(sptx, "nearest", "run", "--model.") == [] and "--device.threads=" in bash(sptx, "nearest", "run", "--device.")
    assert bash(sptx, "train", "my") == []


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh here")
def test_zsh_reads_its_own(sptx):
    subprocess.run(["zsh", "-n", "/dev/stdin"], input=sptx("help", "zsh").stdout, text=True, check=True)
    lists = f"compdef() {{ :; }}; source <({PROGRAM} help zsh); _sptx_w2v_words plan; print -r -- $offered; _sptx_w2v_values --device.backend; print -r -- $values"
    done = subprocess.run(["zsh", "-fc", lists], capture_output=True, text=True, check=True)
    plan, backends = done.stdout.splitlines()
    assert plan.split() == words_of(sptx, "plan") and backends.split() == ["auto", "cpu", "cuda"]


def test_every_option_that_is_offered_is_known(sptx):
    for command in commands(sptx):
        for word in words_of(sptx, command):
            if word in ("--help", "--quiet") or "." in word:
                continue
            said = [sptx(command, *kind, word + "x" * word.endswith("="), expect=None).stderr for kind in kinds(command)]
            assert not all("has no option" in sentence for sentence in said), (command, word, said)


def test_every_option_of_a_usage_is_offered(sptx):
    for command in commands(sptx):
        usage = sptx("help", command).stdout.split("\n\n")[0]
        for option in re.findall(r"--[a-z-]+(?![a-z.-])", usage):
            assert {option, option + "="} & set(words_of(sptx, command)), (command, option)


def test_one_key_is_described(sptx):
    one = sptx("help", "train.product").stdout
    assert one.strip().startswith("train.product = complex") and one.strip() in sptx("help", "keys").stdout
    assert sptx("help", "keys", "train.product").stdout == one
    walks = sptx("help", "walks").stdout
    assert walks in sptx("help", "keys").stdout and "walks.per_node = 10" in walks and sptx("help", "keys", "walks").stdout == walks
    assert "train.epochs = auto" in sptx("help", "keys", "train").stdout and sptx("help", "train").stdout.startswith("sptx-w2v train ")
    assert "did you mean 'train.product'?" in sptx.refuses("help", "train.prodct", code=2)
