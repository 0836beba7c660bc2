#!/usr/bin/env python3
"""Makes the source of the manual for Sphinx: runs the code of the pages, and writes the pages of reference.

  src/docs/make_pages.py OUT [PAGE..]     PAGE: only src/docs/PAGE.md; BUILD names the folder with the program (build)

A block of code that begins with ```sh or ```python is run, and what it printed is put below it. The blocks of a page run in their
order, in one folder that has corpora/ and scripts/; those of Python share their variables, and the value of a last expression is
printed, as in a notebook. A comment `# -> TEXT` in a block says what its output must contain. `<!-- not run: WHY -->` before a block
keeps it from being run. A picture that a page shows is one that its code has drawn.

Reference is written once, where the program has it: keys, commands and formats are what `sptx-w2v help` prints, the C library's
calls are src/sptx.h, and the package's are its docstrings, which are read from the source without importing it.

Exits with 1 and the page, the block and its output where a block fails or prints something else, or where a page names a file of the
repository that is not there. The last line counts blocks.
"""
import ast
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
PACKAGE = ROOT / "src" / "python" / "sptx"
BLOCK = re.compile(r"(?:<!-- not run: (?P<why>[^\n]*?) -->\n)?^```(?P<kind>sh|python)\n(?P<code>.*?)^```\n", re.S | re.M)
LIMIT = 300 * int(os.environ.get("SPTX_SLOWER", 1))  # seconds that a block may take
SESSION = """
import ast, json, sys
names = {"__name__": "__main__"}
for line in sys.stdin:
    tree = ast.parse(json.loads(line))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "page", "exec"), names)
    value = last and eval(compile(ast.Expression(last.value), "page", "eval"), names)
    if value is not None:
        print(value)
    print("\\0", end="", flush=True)
"""


class Wrong(Exception):
    """What a page must not have; the sentence names the page."""


# ---- pages whose code is run ----

def python_for(code):
    """Returns the Python that runs a page: one with PyTorch if its code imports it; None if there is none."""
    torch = "import torch" in code or "sptx.torch" in code
    for python in [BUILD / "venv-torch/bin/python"] if torch else [BUILD / "venv/bin/python"]:
        if python.exists():
            return str(python)
    return None if torch else sys.executable


class Page:
    """One page: `text` with the output below each block, `ran` and `left` blocks of code."""

    def __init__(self, name, out):
        self.name, self.ran, self.left = name, 0, []
        self.folder = out / "run" / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for linked in ("corpora", "scripts"):
            (self.folder / linked).symlink_to(ROOT / linked)
        source = (HERE / (name + ".md")).read_text()
        self.python = python_for(source)
        path = [str(BUILD), *([os.path.dirname(self.python)] if self.python else []), os.environ["PATH"]]
        self.environment = {**os.environ, "PATH": os.pathsep.join(path), "PYTHONPATH": str(ROOT / "src/python"), "MPLBACKEND": "Agg",
                            "SPTX_LIBRARY": str(BUILD / "libsptx.so"), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(self.folder), "COLUMNS": "120"}
        self.session = None
        try:
            self.text = BLOCK.sub(self._run, source)
        finally:
            if self.session:
                self.session.stdin.close()
                self.session.kill()
                self.session.wait()
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", source):
            if not (self.folder / picture).exists():
                raise Wrong("%s.md shows '%s', which its code has not made" % (name, picture))
            shutil.copy(self.folder / picture, out / picture)
        for file in re.findall(r"`((?:configs|corpora|scripts|src|tests|kernels|\.ci)/[\w./-]*)`", source):
            if not (ROOT / file).exists():
                raise Wrong("%s.md names '%s', which is not there" % (name, file))

    def _wrong(self, code, what, printed):
        raise Wrong("%s.md: %s, in this block:\n%s--- it printed:\n%s" % (self.name, what, code, printed[-3000:]))

    def _run(self, match):
        kind, code = match["kind"], match["code"]
        if match["why"] or (kind == "python" and not self.python):
            self.left.append("%s.md: %s" % (self.name, match["why"] or "there is no PyTorch where scripts/setup.sh looks for it"))
            return match.group()
        printed = (self._shell if kind == "sh" else self._python)(code)
        for wanted in re.findall(r"# -> (.*?)\s*$", code, re.M):
            if wanted not in printed:
                self._wrong(code, "the output lacks '%s'" % wanted, printed)
        self.ran += 1
        printed = printed.replace(str(self.folder), ".").strip("\n")
        return match.group() + ("\n```text\n%s\n```\n" % printed if printed else "")

    def _shell(self, code):
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", code], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
        if done.returncode:
            self._wrong(code, "exit code %d" % done.returncode, done.stdout)
        return done.stdout

    def _python(self, code):
        if not self.session:
            self.session = subprocess.Popen([self.python, "-u", "-c", SESSION], cwd=self.folder, env=self.environment, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.session.stdin.write(json.dumps(code) + "\n")
        self.session.stdin.flush()
        printed = ""
        while not printed.endswith("\0"):
            letter = self.session.stdout.read(1)
            if not letter:
                self._wrong(code, "an exception", printed)
            printed += letter
        return printed[:-1]


# ---- the reference pages, made of the program's help, the header and the package's docstrings ----

def helped(*words):
    return subprocess.run([str(BUILD / "sptx-w2v"), "help", *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def keys():
    """The page of keys: a heading for each section and for each key of `help keys`, which separates keys by empty lines."""
    said = helped("keys")
    first = re.search(r"^The ten that matter most$", said, re.M).start()
    text = ["# Keys\n\nWhat `sptx-w2v help keys` prints. Set a key as `--section.key=value` on the command line, in a configuration file, or by "
            "`keys={\"section.key\": value}` in Python. [Commands](commands.md) have options of their own.\n\n```text\n%s```\n" % said[:first]]
    for line in re.split(r"\n(?=\S)|\n(?=  [a-z]+\.[a-z0-9_]+ =)", "\n" + said[first:].strip()):
        if not line.strip():
            continue
        head, _, rest = line.partition("\n")
        if head.startswith("  "):
            name, _, value = head.strip().partition(" = ")
            text.append("### %s\n\nDefault: `%s`\n\n```text\n%s\n```\n" % (name, value, "\n".join(one[6:] for one in rest.rstrip().split("\n"))))
        else:
            text.append("## %s\n" % head.strip() + ("\n```text\n%s\n```\n" % rest.strip("\n") if rest.strip() else ""))
    return "\n".join(text)


def commands():
    """The page of commands: a heading and the help of each line of `help`."""
    names = re.findall(r"^  ([a-z][\w-]*) {2,}\S", helped(), re.M)
    return "# Commands\n\nWhat `sptx-w2v help` and `sptx-w2v help COMMAND` print.\n\n```text\n%s```\n" % helped() + "".join(
        "\n## %s\n\n```text\n%s```\n" % (name, helped(name)) for name in names)


def formats():
    return "# Formats of data\n\nWhat `sptx-w2v help formats` prints. [Your data](questions.md) has examples.\n\n```text\n%s```\n" % helped("formats")


def header():
    """The page of the C library: src/sptx.h as it is, with a heading for each of its sections."""
    parts = re.split(r"^/\* ---- (.+?)(?: ----)?(?: \*/)?$", (ROOT / "src/sptx.h").read_text(), flags=re.M)
    text = "# The C library\n\n`make libsptx` builds it; this is `src/sptx.h` as it stands. `src/library/examples` has two programs.\n\n```c\n%s```\n" % parts[0]
    for title, body in zip(parts[1::2], parts[2::2]):
        opened = "" if body.lstrip("\n").startswith(("/*", "#", "struct", "enum", "int", "const", "void")) or "*/" not in body else "/* "
        text += "\n## %s\n\n```c\n%s%s\n```\n" % (title.strip(" -*/").capitalize(), opened, body.strip("\n"))
    return text


class Source:
    """The package's classes and functions by name, from its source."""

    def __init__(self):
        self.nodes, self.exported = {}, {}
        for file in sorted(PACKAGE.rglob("*.py")):
            tree = ast.parse(file.read_text())
            for node in tree.body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    self.nodes[file, node.name] = node
                elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__" and isinstance(node.value, ast.List):
                    self.exported[file] = ast.literal_eval(node.value)

    def find(self, name, near):
        return next((node for (file, one), node in sorted(self.nodes.items(), key=lambda item: item[0][0] != near) if one == name), None)

    def members(self, node, near):
        """Returns the public methods and properties of a class with a docstring, those of its bases after its own."""
        found = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_") and ast.get_docstring(one)}
        for base in node.bases:
            parent = self.find(getattr(base, "id", getattr(base, "attr", "")), near)
            found = {**(self.members(parent, near) if parent else {}), **found}
        return found

    def entry(self, name, module, near):
        node = self.find(name, near)
        if node is None or not ast.get_docstring(node):
            return ""
        full = "%s.%s" % (module, name)
        if isinstance(node, ast.FunctionDef):
            return "\n## %s\n\n%s" % (full, described(name, node))
        begin = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
        text = "\n## %s\n\n%s" % (full, described(name, node, begin))
        for member in self.members(node, near).values():
            decorators = [ast.unparse(one) for one in member.decorator_list]
            if not any(one.endswith(".setter") for one in decorators):
                text += "\n### %s.%s\n\n%s" % (name, member.name, described(member.name, member, None if "property" in decorators else member))
        return text


def described(name, node, call=None):
    """A signature and a docstring, as they are in the source."""
    call = call or (node if isinstance(node, ast.FunctionDef) and not node.decorator_list else None)
    text = "```python\n%s(%s)\n```\n" % (name, re.sub(r"^(self|cls)(, )?", "", ast.unparse(call.args))) if call else ""
    doc = ast.get_docstring(node)
    if call is not None and call is not node and ast.get_docstring(call):
        doc += "\n\n" + ast.get_docstring(call)
    return text + "\n```text\n%s\n```\n" % doc


MODULES = {"sptx": "", "sptx.torch": "torch.py", "sptx.lightning": "lightning.py", "sptx.transformers": "transformers.py",
           "sptx.implicit": "implicit/_models.py", "sptx.lightfm": "lightfm/lightfm.py"}


def package():
    source = Source()
    text = "# The Python package\n\nThe docstrings of the package, as `help()` shows them. [src/python/README.md](package.md) is its manual.\n"
    for module, file in MODULES.items():
        near = PACKAGE / (file or "__init__.py")
        names = source.exported.get(near) or [name for one, name in source.nodes if one == near and not name.startswith("_")]
        text += "".join(source.entry(name, module, near) for name in sorted(names, key=str.lower))
    return text


def package_manual():
    """src/python/README.md, with its title as the site has it."""
    return (ROOT / "src/python/README.md").read_text().replace("# sptx\n", "# The package's manual\n", 1)


REFERENCE = {"keys": keys, "commands": commands, "formats": formats, "c": header, "python": package, "package": package_manual}


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: make_pages.py OUT [PAGE..]")
    out = Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    names = sys.argv[2:] or sorted(file.stem for file in HERE.glob("*.md"))
    ran, wrong, left = 0, [], []
    with ThreadPoolExecutor(2) as pool:
        for name, page in [(name, pool.submit(Page, name, out)) for name in names]:
            try:
                page = page.result()
            except (Wrong, subprocess.TimeoutExpired) as said:
                wrong.append(str(said))
                continue
            (out / (name + ".md")).write_text(page.text)
            ran, left = ran + page.ran, left + page.left
    if not sys.argv[2:]:
        for name, make in REFERENCE.items():
            (out / (name + ".md")).write_text(make())
        shutil.copy(ROOT / "CHANGELOG.md", out / "changes.md")
        shutil.copy(HERE / "conf.py", out / "conf.py")
    for said in left:
        print("not run: " + said)
    for said in wrong:
        print(said, file=sys.stderr)
    print("%d passed, %d failed" % (ran, len(wrong)))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
