"""Runs the notebooks of src/python/examples. Their stored outputs are from another machine, so the outputs here may differ."""

import importlib.util
import json
import threading
import urllib.error
import urllib.request

import pytest

import notebook
import sptx
from conftest import TOP

EXAMPLES = TOP / "src/python/examples"


@pytest.fixture
def names(request, tmp_path, monkeypatch):
    """Runs a notebook in a directory of its own. Returns the variables that it leaves."""
    if request.param != "words.ipynb":
        pytest.importorskip("pandas", reason="no pandas, which makes the frame of ratings")
    monkeypatch.chdir(tmp_path)
    book = notebook.read(EXAMPLES / request.param)
    outputs, names = notebook.run(book)
    stored = [cell["outputs"] for cell in notebook.code_cells(book)]
    assert [kinds_of(cell) for cell in stored] == [kinds_of(cell) for cell in outputs], "store them by tests/python/notebook.py"
    return names


def kinds_of(outputs):
    return [output["output_type"] for output in outputs]


@pytest.mark.parametrize("names", ["words.ipynb"], indirect=True)
def test_words(names, tmp_path):
    run = names["run"]
    assert "right" in dict(run.nearest("left", k=3)) and "decode" in dict(run.nearest("encode", k=3))
    assert run.similarity("minute", "hour") > run.similarity("minute", "encode") + 0.3
    assert (tmp_path / "words.html").exists() and (tmp_path / "words.bin").exists()


@pytest.mark.parametrize("names", ["ratings.ipynb"], indirect=True)
def test_ratings(names):
    shelf_of = names["shelf_of"]
    assert [shelf_of[title] for title, _ in names["run"].recommend(["Dune", "Solaris"], k=4)] == ["science fiction"] * 4
    assert names["found"] > 2 * names["most_liked"]


@pytest.mark.parametrize("names", ["books.ipynb"], indirect=True)
def test_books(names, tmp_path):
    judged, chance = names["judged"], 20 / len(names["new"])
    assert judged["new items among new ones"]["recall"] > 2 * chance
    assert judged["new items among all"]["recall"] > 0
    assert judged["trained items among all"]["recall"] > 0.9 * judged["trained items among trained ones"]["recall"]
    assert names["new_for_reader"][0][0] == "today 1" and len(names["new_for_reader"]) == 3
    subjects = {int(names["of_book"][book].split("(Author ")[1].split(",")[0].rstrip(")")) % 6 for book, _ in names["like_author"]}
    assert subjects == {int(names["writers"][0].split()[1]) % 6}
    assert b'"by":"labels"' in (tmp_path / "books.html").read_bytes()


@pytest.mark.parametrize("names", ["facts.ipynb"], indirect=True)
def test_facts(names):
    assert names["judged"]["mrr"] > .25 and names["judged"]["unknown"] == 0
    cast = names["train"][names["train"]["head"] == names["film"]]["tail"]
    assert len(names["answers"]) == 5 and not {person for person, _ in names["answers"]} & {*cast}
    assert names["of_true"].mean() > names["of_false"].mean() + .2
    assert names["told"]["accuracy"] > .7 and names["told"]["unknown"] == 0


def test_serve(tmp_path):
    spec = importlib.util.spec_from_file_location("serve", EXAMPLES / "serve.py")
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    run = sptx.fit([["king", "woman", "man", "sin"] * 5] * 50, tmp_path / "run", dim=8)
    server = serve.serve(tmp_path / "run", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = "http://127.0.0.1:%d/?" % server.server_port
        answers = json.load(urllib.request.urlopen(address + "word=king&k=2"))
        assert [word for word, _ in answers] == [word for word, _ in run.nearest("king", k=2)]
        for asked, code in ("word=kong", 404), ("k=2", 404), ("word=king&k=two", 400):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(address + asked)
            assert refused.value.code == code and "error" in json.load(refused.value)
    finally:
        server.shutdown()
        server.server_close()
