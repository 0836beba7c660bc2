"""The structs and calls of src/sptx.h for ctypes, in the order of that header. This module only declares them.

Why ctypes. One wheel must work with every CPython from 3.9 on, and install without a compiler. The binding passes only pointers,
sizes and small structs. ctypes is in the standard library; cffi needs a code generator and a package at run time, and nanobind a
build for each version (its stable ABI begins with 3.12). ctypes releases the interpreter's lock during a call, so other threads
run. It adds up to ten microseconds to a call, which is much for calls on some hundred rows: a compiled module makes those
(_compiled.py).
"""

import ctypes
import itertools
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_uint32, c_uint64, c_void_p)
from typing import Iterator

from . import _build

OK, FAILED, USAGE, STOPPED = range(4)
HOST, CUDA = 1, 2
ANEW, RESUME, OVERWRITE = range(3)
ROWS_MOST, COLUMNS_MOST = 4294967294, 4096
PLACES = ("pinned", "gpu", "file")

WarningFunction = CFUNCTYPE(None, c_void_p, c_char_p)


class ContextOptions(Structure):
    _fields_ = [("size", c_uint64), ("device", c_char_p), ("threads", c_uint32), ("reserved", c_uint32),
                ("gpu_budget", c_uint64), ("warning", WarningFunction), ("user", c_void_p)]


# The options of a table that are numbers, in the order of sptx.h. NaN means the default of the optimizer.
NUMBERS = ("lr", "momentum", "weight_decay", "lr_decay", "initial_accumulator", "eps", "rho", "alpha", "beta1", "beta2",
           "lambd", "t0", "eta_minus", "eta_plus", "step_min", "step_max", "clip")
LATER_NUMBERS = ("l1", "l2", "beta")  # at the end of the struct
FLAGS = ("nesterov", "centered", "amsgrad", "count_rows")


class TableOptions(Structure):
    _fields_ = [  # type: ignore[assignment]
        ("size", c_uint64), ("rows", c_uint64), ("dim", c_uint32), ("weights", c_uint32), ("state", c_uint32),
        ("seed", c_uint32), ("hot_rows", c_uint64), ("optimizer", c_char_p), ("init", c_char_p), ("directory", c_char_p),
        *((name, c_double) for name in NUMBERS), *((name, c_uint32) for name in FLAGS),
        ("dtype", c_uint32), ("state_dtype", c_uint32), ("gpu_rows", c_uint64), ("check_finite", c_uint32), ("reserved", c_uint32),
        *((name, c_double) for name in LATER_NUMBERS),
        ("shared", c_char_p), ("owner", c_uint32), ("rank", c_uint32), ("ranks", c_uint32), ("reserved2", c_uint32)]


OWNERS = ("exact", "lock-free")  # names of enum sptx_owner
DTYPES = ("float32", "bfloat16", None, "int8", "float8")  # names of enum sptx_dtype; None: SPTX_AS_WEIGHTS
AS_WEIGHTS = 2


EVICTS = (None, "lru", "lfu", "age")  # names of enum sptx_evict


class KeyedOptions(Structure):
    _fields_ = [("size", c_uint64), ("evict", c_uint32), ("admit", c_uint32), ("keep_evicted", c_uint64)]


class Mark(Structure):
    _fields_ = [("call", c_uint64), ("chain", c_uint64)]


class KeyedNumbers(Structure):
    _fields_ = [*((name, c_uint64) for name in ("size", "capacity", "keys", "calls", "chain", "waiting", "dropped", "evictions", "evicted", "lost")),
                ("evict", c_uint32), ("admit", c_uint32)]


class Ids(Structure):
    _fields_ = [("data", c_void_p), ("count", c_uint64), ("bits", c_uint32), ("memory", c_uint32)]


class NgramLaw(Structure):
    _fields_ = [("size", c_uint64), ("seed", c_uint64), ("part_rows", c_uint64), ("orders", c_uint32), ("heads", c_uint32),
                ("order", POINTER(c_uint32))]


class Tokens(Structure):
    _fields_ = [("kind", c_uint32), ("bits", c_uint32), ("data", c_void_p), ("offsets", c_void_p), ("count", c_uint64)]


class Counted(Structure):
    _fields_ = [("size", c_uint64), ("words", Tokens), ("counts", c_void_p), ("sentences", c_uint64), ("tokens", c_uint64)]


class Field(Structure):
    _fields_ = [("text", c_char_p), ("length", c_uint64), ("kind", c_uint32), ("reserved", c_uint32)]


class Rows(Structure):
    _fields_ = [("size", c_uint64), ("fields", POINTER(Field)), ("rows", c_uint64), ("columns", c_uint64), ("names", POINTER(c_char_p)),
                ("what", c_char_p)]


class Looked(Structure):
    _fields_ = [("size", c_uint64), ("format", c_char_p), ("column", c_int32 * 3), ("events", c_uint32)]


TOKENS_TEXT, TOKENS_NUMBERS, TOKENS_KNOWN = range(3)


class View(Structure):
    _fields_ = [("size", c_uint64), ("data", c_void_p), ("first", c_uint64), ("rows", c_uint64), ("stride", c_uint64),
                ("dim", c_uint32), ("cuda", c_uint32), ("dtype", c_uint32), ("reserved", c_uint32)]


class Progress(Structure):
    _fields_ = [("size", c_uint64), ("step", c_uint64), ("epoch", c_uint64), ("done", c_double), ("loss", c_double),
                ("lr", c_double), ("words_per_second", c_double), ("pairs_per_second", c_double), ("seconds", c_double),
                ("line", c_char_p)]


class Data(Structure):
    _fields_ = [("path", c_char_p), ("corpus", c_void_p)]


class Number(Structure):
    _fields_ = [("part", c_char_p), ("name", c_char_p), ("value", c_double), ("count", c_uint64), ("text", c_char_p)]


class EvaluateOptions(Structure):
    _fields_ = [("size", c_uint64), ("known", POINTER(Data)), ("table", c_char_p), ("score", c_char_p), ("format", c_char_p),
                ("k", c_uint64), ("directed", c_uint64), ("first", c_uint64), ("met", c_uint64), ("sample", c_uint64),
                ("shares", POINTER(c_double)), ("share_count", c_uint64)]


class AnswersOptions(Structure):
    _fields_ = [("size", c_uint64), ("heads", c_uint64), ("seen", c_uint64)]


class Scored(Structure):
    _fields_ = [("score", c_double), ("probability", c_double)]


class ScoreOptions(Structure):
    _fields_ = [("size", c_uint64), ("validation", POINTER(Data))]


class NearestOptions(Structure):
    _fields_ = [("size", c_uint64), ("table", c_char_p), ("metric", c_char_p), ("excluded", c_void_p), ("lists", c_uint64)]


class RecommendOptions(Structure):
    _fields_ = [("size", c_uint64), ("score", c_char_p), ("names", POINTER(c_char_p)), ("candidates", c_void_p),
                ("candidate_count", c_uint64), ("among", c_uint64), ("seen", c_uint64), ("only_new", c_uint64)]


class ExportOptions(Structure):
    _fields_ = [("size", c_uint64), ("table", c_char_p), ("type", c_char_p), ("lists", c_uint64), ("columns", c_uint32),
                ("reserved", c_uint32), ("recall", POINTER(c_double))]


class ReportOptions(Structure):
    _fields_ = [("size", c_uint64), ("run", c_char_p), ("table", c_char_p), ("titles", c_char_p),
                ("evaluations", POINTER(c_char_p)), ("evaluation_count", c_uint64), ("top", c_uint64), ("listed", c_uint64),
                ("lists", c_uint64), ("labels", c_char_p), ("colour", c_char_p), ("features", c_char_p), ("words", c_char_p)]


class InferOptions(Structure):
    _fields_ = [("size", c_uint64), ("epochs", c_uint64), ("lr", c_double), ("min_lr", c_double)]


class TuneOptions(Structure):
    _fields_ = [("size", c_uint64), ("minutes", c_double), ("trials", c_uint64), ("out", c_char_p), ("pairs", POINTER(c_char_p)),
                ("analogies", POINTER(c_char_p)), ("pair_count", c_uint64), ("analogy_count", c_uint64)]


class Tuned(Structure):
    _fields_ = [("trials", c_uint64), ("epochs", c_uint64), ("score", c_double), ("own", c_double), ("measure", c_char_p),
                ("keys", c_char_p)]


ProgressFunction = CFUNCTYPE(c_int, c_void_p, POINTER(Progress))

# name -> (result, arguments). Handles are void pointers.
_CALLS = {
    "sptx_version": (c_char_p, []),
    "sptx_open": (c_int, [POINTER(c_void_p), POINTER(ContextOptions)]),
    "sptx_close": (None, [c_void_p]),
    "sptx_error": (c_char_p, [c_void_p]),
    "sptx_device": (c_char_p, [c_void_p]),
    "sptx_wait": (c_int, [c_void_p]),
    "sptx_table_defaults": (None, [POINTER(TableOptions), c_uint64]),
    "sptx_optimizer": (c_char_p, [c_uint32]),
    "sptx_optimizer_option": (c_char_p, [c_char_p, c_uint32]),
    "sptx_table_open": (c_int, [c_void_p, POINTER(TableOptions), POINTER(c_void_p)]),
    "sptx_table_close": (None, [c_void_p]),
    "sptx_table_rows": (c_uint64, [c_void_p]),
    "sptx_table_dim": (c_uint32, [c_void_p]),
    "sptx_table_lr": (c_double, [c_void_p]),
    "sptx_table_set_lr": (c_int, [c_void_p, c_double]),
    "sptx_table_steps": (c_uint64, [c_void_p]),
    "sptx_table_set_steps": (c_int, [c_void_p, c_uint64]),
    "sptx_table_barrier": (c_int, [c_void_p]),
    "sptx_table_save": (c_int, [c_void_p, c_char_p]),
    "sptx_table_load": (c_int, [c_void_p, c_char_p]),
    "sptx_table_save_begin": (c_int, [c_void_p, c_char_p, c_uint64, POINTER(c_void_p)]),
    "sptx_saving_done": (c_int, [c_void_p]),
    "sptx_saving_wait": (c_int, [c_void_p]),
    "sptx_saving_error": (c_char_p, [c_void_p]),
    "sptx_saving_close": (None, [c_void_p]),
    "sptx_fetch": (c_int, [c_void_p, POINTER(Ids), c_void_p, c_int, c_void_p]),
    "sptx_prefetch": (c_int, [c_void_p, POINTER(Ids), c_void_p]),
    "sptx_update": (c_int, [c_void_p, POINTER(Ids), c_void_p, c_int, c_void_p]),
    "sptx_store": (c_int, [c_void_p, POINTER(Ids), c_void_p, c_int, c_void_p]),
    "sptx_ngrams": (c_int, [c_void_p, POINTER(NgramLaw), POINTER(Ids), c_uint64, c_uint64, c_void_p, c_void_p]),
    "sptx_table_view": (c_int, [c_void_p, c_char_p, POINTER(View)]),
    "sptx_table_cached": (c_int, [c_void_p, POINTER(c_uint32), c_uint64, POINTER(c_uint64)]),
    "sptx_table_field": (c_char_p, [c_void_p, c_uint32]),
    "sptx_keyed_defaults": (None, [POINTER(KeyedOptions), c_uint64]),
    "sptx_keyed_open": (c_int, [c_void_p, POINTER(TableOptions), POINTER(KeyedOptions), POINTER(c_void_p)]),
    "sptx_keyed_close": (None, [c_void_p]),
    "sptx_keyed_table": (c_void_p, [c_void_p]),
    "sptx_keyed_hash": (c_int, [c_char_p, c_void_p, c_uint64, c_void_p]),
    "sptx_keyed_fetch": (c_int, [c_void_p, c_void_p, c_uint64, c_void_p, c_int, c_void_p]),
    "sptx_keyed_find": (c_int, [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p, c_int, c_void_p]),
    "sptx_keyed_update": (c_int, [c_void_p, c_void_p, c_uint64, c_void_p, c_int, c_void_p]),
    "sptx_keyed_store": (c_int, [c_void_p, c_void_p, c_uint64, c_void_p, c_int, c_void_p]),
    "sptx_keyed_remove": (c_int, [c_void_p, c_void_p, c_uint64, POINTER(c_uint64)]),
    "sptx_keyed_keys": (c_int, [c_void_p, c_void_p, c_uint64, POINTER(c_uint64)]),
    "sptx_keyed_counts": (c_int, [c_void_p, c_void_p, c_uint64, c_void_p]),
    "sptx_keyed_evicted": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, POINTER(c_uint64)]),
    "sptx_keyed_mark": (c_int, [c_void_p, POINTER(Mark)]),
    "sptx_keyed_save": (c_int, [c_void_p, c_char_p, POINTER(Mark)]),
    "sptx_keyed_options_of": (c_int, [c_void_p, c_char_p, POINTER(TableOptions), POINTER(KeyedOptions)]),
    "sptx_keyed_load": (c_int, [c_void_p, c_char_p]),
    "sptx_keyed_about": (c_int, [c_void_p, POINTER(KeyedNumbers)]),
    "sptx_train": (c_int, [c_void_p, c_char_p, POINTER(c_char_p), c_uint64, c_int, ProgressFunction, c_void_p]),
    "sptx_trained": (c_char_p, [c_void_p]),
    "sptx_stop": (None, [c_void_p]),
    "sptx_corpus_open": (c_int, [c_void_p, c_char_p, POINTER(c_char_p), c_uint64, POINTER(c_void_p)]),
    "sptx_corpus_close": (None, [c_void_p]),
    "sptx_corpus_words": (c_int, [c_void_p, c_uint32, POINTER(Tokens)]),
    "sptx_corpus_sentences": (c_int, [c_void_p, POINTER(Tokens), c_void_p, c_uint64, POINTER(Tokens)]),
    "sptx_corpus_pairs": (c_int, [c_void_p, POINTER(Tokens), POINTER(Tokens), c_void_p]),
    "sptx_corpus_edges": (c_int, [c_void_p, POINTER(Tokens), POINTER(Tokens), c_void_p]),
    "sptx_corpus_triples": (c_int, [c_void_p, POINTER(Tokens), POINTER(Tokens), POINTER(Tokens)]),
    "sptx_corpus_look": (c_int, [c_void_p, POINTER(Rows), POINTER(Looked)]),
    "sptx_corpus_say": (c_int, [c_void_p, c_char_p]),
    "sptx_corpus_text": (c_int, [c_void_p, c_char_p, c_uint64]),
    "sptx_corpus_counted": (c_int, [c_void_p, POINTER(Counted)]),
    "sptx_corpus_set": (c_int, [c_void_p, POINTER(c_char_p), c_uint64]),
    "sptx_corpus_train": (c_int, [c_void_p, c_int, ProgressFunction, c_void_p]),
    "sptx_tune": (c_int, [c_void_p, c_char_p, POINTER(c_char_p), c_uint64, POINTER(TuneOptions), ProgressFunction, c_void_p,
                          POINTER(Tuned)]),
    "sptx_corpus_tune": (c_int, [c_void_p, POINTER(TuneOptions), ProgressFunction, c_void_p, POINTER(Tuned)]),
    "sptx_run_open": (c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "sptx_run_close": (None, [c_void_p]),
    "sptx_run_rows": (c_uint64, [c_void_p]),
    "sptx_run_dim": (c_uint32, [c_void_p]),
    "sptx_run_key": (c_char_p, [c_void_p, c_char_p, c_char_p]),
    "sptx_run_word": (c_void_p, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "sptx_run_words": (c_int, [c_void_p, c_uint64, c_uint64, c_void_p, c_void_p, POINTER(Tokens)]),
    "sptx_run_buckets": (c_int, [c_void_p, c_void_p, c_uint64]),
    "sptx_run_count": (c_uint64, [c_void_p, c_uint64]),
    "sptx_run_find": (c_int, [c_void_p, c_char_p, POINTER(c_uint64)]),
    "sptx_run_view": (c_int, [c_void_p, c_char_p, POINTER(View)]),
    "sptx_run_vectors": (c_int, [c_void_p, c_char_p, c_void_p, c_uint64, c_void_p]),
    "sptx_run_unseen": (c_int, [c_void_p, c_char_p, c_char_p, c_void_p]),
    "sptx_run_vector_rows": (c_uint64, [c_void_p]),
    "sptx_run_items": (c_uint64, [c_void_p]),
    "sptx_run_relations": (c_uint64, [c_void_p]),
    "sptx_run_check_trained": (c_int, [c_void_p, c_char_p, c_uint64]),
    "sptx_run_nearest": (c_int, [c_void_p, c_void_p, c_uint64, POINTER(NearestOptions), c_uint32, c_void_p, c_void_p]),
    "sptx_run_infer": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, POINTER(InferOptions), c_void_p]),
    "sptx_run_recommend": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, POINTER(RecommendOptions), c_uint32, c_void_p, c_void_p]),
    "sptx_run_add_features": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_double, POINTER(c_uint64)]),
    "sptx_run_analogy": (c_int, [c_void_p, c_char_p, c_void_p, c_uint32, c_void_p, c_void_p]),
    "sptx_run_evaluate": (c_int, [c_void_p, c_char_p, POINTER(Data), POINTER(EvaluateOptions), POINTER(POINTER(Number)), POINTER(c_uint64)]),
    "sptx_run_answers": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, POINTER(AnswersOptions), c_uint32, c_void_p, c_void_p]),
    "sptx_run_score": (c_int, [c_void_p, POINTER(Data), POINTER(ScoreOptions), POINTER(POINTER(Scored)), POINTER(c_uint64)]),
    "sptx_run_export": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(ExportOptions)]),
    "sptx_run_report": (c_int, [c_void_p, c_char_p, POINTER(ReportOptions)]),
}


def _load():
    """Loads the library of the package's build for this machine, or the one that SPTX_LIBRARY names (for trying another)."""
    path = os.environ.get("SPTX_LIBRARY") or os.path.join(_build.folder(), "libsptx.so")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError("sptx: '%s' cannot be loaded: %s" % (path, error)) from None
    for name, (result, arguments) in _CALLS.items():
        call = getattr(library, name, None)
        if call is None:
            raise ImportError("sptx: '%s' has no %s; it is another version's library" % (path, name))
        call.restype, call.argtypes = result, arguments
    return library


library = _load()


def names(call, *arguments) -> Iterator[str]:
    """Returns the names that a call gives for the indexes 0, 1, 2.. as its last argument, up to NULL."""
    for index in itertools.count():
        name = call(*arguments, index)
        if name is None:
            return
        yield name.decode()


version = library.sptx_version().decode()
