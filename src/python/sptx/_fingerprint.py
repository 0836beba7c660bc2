"""Fingerprints of a table's rows: they tell whether a table and a model's checkpoint belong together.

A fingerprint is a dict {"weights": .., "exp_avg": ..}: for each field a hash of all its bytes. A table and the file that it was
saved to have the same fingerprint. Each core hashes about 1 GB/s, so hashing takes less time than saving.
"""

import concurrent.futures
import functools
import hashlib
import os
import re
from typing import Any, Callable, Dict

import numpy

from ._table import Table
from ._views import values_of, widened

_BLOCK = 16 << 20  # bytes hashed at a time


def of_table(table: Table) -> Dict[str, str]:
    """Returns the fingerprint of a table. If some of the optimizer's state is on the GPU, where it cannot be read, it has only the weights."""
    found = {"weights": _hash(table.rows, table.dim, lambda ids: table.fetch(ids))}
    try:
        state = {field: numpy.asarray(rows) for field, rows in table.state.items()}
    except ValueError:  # all rows are on the GPU
        return found
    if any(len(rows) != table.rows for rows in state.values()):
        return found
    found.update((field, _hash(table.rows, table.dim, lambda ids, rows=rows: rows[ids])) for field, rows in state.items())
    return found


def of_file(path: str, fields: Any) -> Dict[str, str]:
    """Returns the fingerprint of a file that Table.save() wrote: of those of the fields given here that the file contains."""
    records = numpy.load(path, mmap_mode="r")
    names = {re.sub("_(bfloat16|int8|float8)$", "", name): name for name in records.dtype.names or ()}

    def rows_of(field: str, ids: Any) -> Any:
        part = records[ids]
        rows = values_of(part) if field == "weights" else part[names[field]]
        return widened(rows) if rows.dtype == numpy.uint16 else rows

    return {field: _hash(len(records), records[names[field]][0].size, functools.partial(rows_of, field)) for field in fields if field in names}


def differences(wanted: Dict[str, str], found: Dict[str, str]) -> Any:
    """Returns the fields that are in both fingerprints and differ, "weights" first."""
    return [field for field in wanted if field in found and wanted[field] != found[field]]


def _hash(rows: int, dim: int, read: Callable[[Any], Any]) -> str:
    """Returns the hash of rows [rows x dim]; they are read in blocks, by ids, on all cores."""
    step = max(1, _BLOCK // (4 * dim))

    def hash_of(first: int) -> bytes:
        block = read(numpy.arange(first, min(first + step, rows)))
        return hashlib.blake2b(numpy.ascontiguousarray(block, numpy.float32), digest_size=16).digest()

    with concurrent.futures.ThreadPoolExecutor(min(16, len(os.sched_getaffinity(0)))) as threads:
        return hashlib.blake2b(b"".join(threads.map(hash_of, range(0, rows, step))), digest_size=16).hexdigest()
