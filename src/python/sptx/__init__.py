"""sptx: rows of huge tables for anyone's model.

    Table       float32 rows that may not fit a GPU, with their optimizer's state: fetch, prefetch, update, store, save, load
    Context     the machine that tables run on, where the default is not wanted
    Rows        rows in place, as Table.weights gives them
    Error       what failed outside a call; a call that is wrong itself raises ValueError, TypeError or IndexError

NumPy is all that is needed; arrays of PyTorch, CuPy and JAX are taken where they come from. help(sptx.Table) says how.
"""

from ._context import Context
from ._errors import Error, OutOfMemory, SptxWarning
from ._library import version as __version__
from ._table import Table
from ._views import Rows

__all__ = ["Context", "Error", "OutOfMemory", "Rows", "SptxWarning", "Table"]
