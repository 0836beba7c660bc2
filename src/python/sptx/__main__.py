"""python -m sptx is the command sptx-w2v."""

from ._program import main

main()
