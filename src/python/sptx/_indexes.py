"""Indexes of other libraries, made from a run's vectors."""

from typing import Any, Optional

import numpy


class Indexes:
    """Base class of sptx.Run with the methods that make an index. An index answers with row numbers: run.words[row] is the word.

    table, lists: as of vectors(). metric: "cosine" or "dot" (the inner product); None: the inner product for a run whose lists
    have rows of their own and were scored by dot products, with whose rows (run.vectors(lists=True)) its items are to be found;
    the cosine for other runs, as nearest() does.
    """

    def to_usearch(self, table: Optional[str] = None, lists: bool = False, metric: Optional[str] = None, dtype: str = "f32") -> Any:
        """Returns a usearch.index.Index of the vectors: run.to_usearch().search(run["sin"], 10).keys. dtype: number type in which the index stores
        vectors: "f32", "bf16", "f16" or "i8". Needs usearch."""
        from usearch.index import Index

        index = Index(ndim=self.dim, metric="cos" if self._by_cosine(metric) else "ip", dtype=dtype)
        rows = self.vectors(table=table, lists=lists)
        index.add(numpy.arange(len(rows), dtype=numpy.uint64), rows)
        return index

    def to_faiss(self, index: str = "Flat", table: Optional[str] = None, lists: bool = False, metric: Optional[str] = None) -> Any:
        """A faiss index of the vectors, trained where it needs training. index: what faiss.index_factory() makes: "Flat", "HNSW32",
        "IVF256,Flat". faiss has no cosine: with metric "cosine" the rows are scaled to length 1 and compared by inner products, so
        scale queries, too (faiss.normalize_L2). Needs faiss."""
        import faiss

        made = faiss.index_factory(self.dim, index, faiss.METRIC_INNER_PRODUCT)
        rows = self.vectors(table=table, lists=lists)
        if self._by_cosine(metric):
            faiss.normalize_L2(rows)
        if not made.is_trained:
            made.train(rows)
        made.add(rows)
        return made

    def to_hnswlib(self, table: Optional[str] = None, lists: bool = False, metric: Optional[str] = None, M: int = 16,
                   ef_construction: int = 200, ef: int = 100) -> Any:
        """Returns an hnswlib.Index of the vectors: run.to_hnswlib().knn_query(run["sin"], k=10)[0]. M: links of a row in hnswlib; ef_construction,
        ef: rows that it looks at for each row inserted, and for each query. Needs hnswlib."""
        import hnswlib

        rows = self.vectors(table=table, lists=lists)
        index = hnswlib.Index(space="cosine" if self._by_cosine(metric) else "ip", dim=self.dim)
        index.init_index(max_elements=len(rows), M=M, ef_construction=ef_construction, random_seed=1)
        index.add_items(rows, numpy.arange(len(rows)))
        index.set_ef(ef)
        return index

    def _by_cosine(self, metric: Optional[str]) -> bool:
        if metric not in (None, "cosine", "dot"):
            raise ValueError("metric = %r is neither 'cosine' nor 'dot'" % (metric,))
        if metric is None and len(self.lists):
            return self._key("train", "score") == "cosine"
        return metric != "dot"
