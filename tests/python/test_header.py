"""Compares the binding's description of the library with the header, which is its manual."""

import ctypes
import re

import pytest

from conftest import TOP
from sptx import _library, _table

HEADER = re.sub(r"/\*.*?\*/", "", (TOP / "src" / "sptx.h").read_text(), flags=re.S)
STRUCTS = {"sptx_context_options": (_library.ContextOptions, 48), "sptx_table_options": (_library.TableOptions, 288),
           "sptx_ids": (_library.Ids, 24), "sptx_tokens": (_library.Tokens, 32), "sptx_counted": (_library.Counted, 64),
           "sptx_field": (_library.Field, 24), "sptx_rows": (_library.Rows, 48), "sptx_looked": (_library.Looked, 32),
           "sptx_view": (_library.View, 56), "sptx_progress": (_library.Progress, 80),
           "sptx_data": (_library.Data, 16), "sptx_number": (_library.Number, 40),
           "sptx_evaluate_options": (_library.EvaluateOptions, 96),
           "sptx_answers_options": (_library.AnswersOptions, 24),
           "sptx_scored": (_library.Scored, 16), "sptx_score_options": (_library.ScoreOptions, 16),
           "sptx_tune_options": (_library.TuneOptions, 64), "sptx_tuned": (_library.Tuned, 48),
           "sptx_report_options": (_library.ReportOptions, 104), "sptx_nearest_options": (_library.NearestOptions, 40),
           "sptx_export_options": (_library.ExportOptions, 48),
           "sptx_recommend_options": (_library.RecommendOptions, 64)}


def fields_of(name):
    """Returns the names of a struct's fields in the header, in order."""
    body = re.search(r"struct %s \{(.*?)\};" % name, HEADER, re.S).group(1)
    for declaration in body.split(";"):
        function = re.search(r"\(\*(\w+)\)", declaration)
        if function:
            yield function.group(1)
        elif declaration.strip():
            yield from re.findall(r"(\w+)(?:\[\d+\])?\s*(?:,|$)", declaration)


@pytest.mark.parametrize("name", STRUCTS)
def test_structs_are_the_headers(name):
    kind, size = STRUCTS[name]
    assert [field[0] for field in kind._fields_] == list(fields_of(name)) and ctypes.sizeof(kind) == size


def test_calls_are_the_headers():
    assert set(_library._CALLS) == set(re.findall(r"\b(sptx_\w+)\(", HEADER)) - {"sptx_progress_fn"}


def test_numbers_are_the_headers():
    values = dict(re.findall(r"(SPTX_[A-Z]+) = (\d)", HEADER))
    assert [int(values["SPTX_" + name]) for name in ("OK", "FAILED", "USAGE", "STOPPED", "HOST", "CUDA", "ANEW", "RESUME", "OVERWRITE")] == \
        [_library.OK, _library.FAILED, _library.USAGE, _library.STOPPED, _library.HOST, _library.CUDA, _library.ANEW,
         _library.RESUME, _library.OVERWRITE]
    assert [_table.place_of(name, "") for name in ("pinned", "gpu", "file")] == \
        [int(values["SPTX_" + name]) for name in ("PINNED", "GPU", "FILE")]
    assert _library.version in HEADER
    limits = dict(re.findall(r"#define SPTX_(\w+_MOST)\s+(\d+)", HEADER))
    assert (_library.ROWS_MOST, _library.COLUMNS_MOST) == tuple(int(limits[name]) for name in ("ROWS_MOST", "COLUMNS_MOST"))
