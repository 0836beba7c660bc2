"""Uses the public names of sptx as a program with types would. It is checked by mypy, and never run (test_typed.py)."""
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy

import sptx
from sptx import (Context, Doc2Vec, FastText, FastTextKeyedVectors, FrozenPhrases, GloVe, HalfRows, KeyedTable, KeyedTables, KeyedVectors, Phrases, Progress,
                  Rows, Run, Saving, SptxWarning, Table, Tables, TaggedDocument, Tuned, Word2Vec)


def rows_of_a_table(gradients: Any) -> Tuple[int, int]:
    context = Context()
    table = Table(rows=1000, dim=16, optimizer="adam", lr=0.01, context=context)
    ids = numpy.array([3, 99])
    rows = table.fetch(ids)
    table.prefetch(ids)
    table.update(ids, gradients)
    table.store(ids, rows)
    table.lr = table.lr / 2
    saving: Optional[Saving] = table.save("table.npy", wait=False)
    if saving is not None:
        saving.wait()
    view: Union[Rows, HalfRows] = table.weights
    state: Dict[str, Union[Rows, HalfRows]] = table.state
    again = Table.load("table.npy", optimizer="adam", lr=0.01)
    print(len(view), sorted(state), again.fields, table.cached())
    return again.shape


def rows_of_several_tables(gradients: List[Any]) -> List[Any]:
    tables = Tables({"user": 1000, "item": 5000}, dim=16, optimizer="sgd", lr=0.1)
    ids = [numpy.array([1]), numpy.array([2, 3])]
    tables.update(ids, gradients)
    return tables.fetch(ids)


def rows_by_key(gradients: Any) -> Tuple[Any, Any]:
    table = KeyedTable(capacity=1000, dim=16, optimizer="adam", evict="lru", admit=2)
    rows = table.fetch(["user:7", "user:9"])
    table.update(["user:7", "user:9"], gradients)
    print(rows, len(table), table.remove([1, 2]), table.keys(), table.counts([3]), table.evicted(), table.waiting, "user:7" in table)
    return table.find(numpy.array([3, 99]))


def several_by_key(gradients: List[Any]) -> List[Any]:
    tables = KeyedTables({"user": KeyedTable(1000, 16), "ad": KeyedTable(100, 1, "ftrl")})
    marks = tables.mark()
    tables.update([["user:7"], [3]], gradients)
    tables.save_changes("changes", since=marks)
    return KeyedTables.load("tables").find([["user:7"], [3]])


def tell(progress: Progress) -> None:
    print(progress)


def runs(sentences: List[List[str]]) -> None:
    run: Run = sptx.fit(sentences, "run", dim=32, epochs=2)
    print(run.nearest("word", k=3), run.words[0], run.dim, run.vectors(["a"]), run.recommend(["a"]), run.infer(["a"]))
    run.close()
    sptx.train("config.ini", progress=tell)
    tuned: Tuned = sptx.tune(sentences)
    print(tuned)


def other_names(sentences: List[List[str]], documents: List[TaggedDocument]) -> None:
    words: KeyedVectors = Word2Vec(sentences, vector_size=8, min_count=1).wv
    print(words.most_similar("a"), words.similarity("a", "b"))
    grams: FastTextKeyedVectors = FastText(sentences, vector_size=8).wv
    print(grams["unknown"])
    print(GloVe(sentences, vector_size=8).score("a", "b"))
    print(Doc2Vec(documents, vector_size=8).infer_vector(["a"]))
    phrases = Phrases(sentences, min_count=1)
    frozen: FrozenPhrases = phrases.freeze()
    print(frozen[["new", "york"]])


def failures() -> None:
    try:
        Run("nowhere")
    except sptx.OutOfMemory:
        raise
    except sptx.Error as error:
        print(error, SptxWarning, sptx.torch, sptx.gensim, sptx.implicit, sptx.lightfm, sptx.speedtorch)
