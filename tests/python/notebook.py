"""Runs the code of a notebook as Jupyter does, without Jupyter: cells in order, each with what it prints and what its last line
gives.

  python tests/python/notebook.py FILE..      runs notebooks where they lie, and stores the outputs in them
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source, names):
    """Runs a cell. Returns its outputs in the form that a notebook stores."""
    printed = io.StringIO()
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(last, "<cell>", "eval"), names)
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)})
    if value is not None:
        outputs.append({"data": {"text/plain": shown(value).splitlines(True)}, "execution_count": None, "metadata": {},
                        "output_type": "execute_result"})
    return outputs


def shown(value):
    """Returns a value in the form in which a notebook shows it: a list of pairs with one pair on each line, other values as their repr()."""
    text = repr(value)
    if isinstance(value, list) and len(text) > 79:
        return "[" + ",\n ".join(map(repr, value)) + "]"
    return text


def run(notebook):
    """Runs all cells in the current directory. Returns the outputs of each, and the variables that they leave."""
    names = {"__name__": "__main__"}
    return [run_cell("".join(cell["source"]), names) for cell in code_cells(notebook)], names


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def store(path):
    notebook = read(path)
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            outputs, _ = run(notebook)
        finally:
            os.chdir(before)
    for number, (cell, found) in enumerate(zip(code_cells(notebook), outputs), 1):
        cell["execution_count"], cell["outputs"] = number, found
        for output in found:
            if "execution_count" in output:
                output["execution_count"] = number
    with open(path, "w", encoding="utf-8") as file:
        json.dump(notebook, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        store(path)
