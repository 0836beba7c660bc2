"""Writes what an HNSW index of hnswlib finds, by cosine: VECTORS.npy QUERIES.npy K M EF_CONSTRUCTION EF OUT.npy

A program of its own, because hnswlib may be there for another Python than the one that runs the tests.
"""
import sys

import hnswlib
import numpy


def main(vectors, queries, k, m, ef_construction, ef, out):
    vectors = numpy.load(vectors)
    index = hnswlib.Index(space="cosine", dim=vectors.shape[1])
    index.init_index(max_elements=len(vectors), M=int(m), ef_construction=int(ef_construction), random_seed=1)
    index.add_items(vectors)
    index.set_ef(int(ef))
    found, _ = index.knn_query(numpy.load(queries), k=int(k))
    numpy.save(out, found.astype(numpy.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])
