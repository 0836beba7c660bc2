"""gensim.models.phrases: words that often follow each other are joined to one."""

from ..._phrases import ENGLISH_CONNECTOR_WORDS, FrozenPhrases, Phrases, npmi_scorer, original_scorer

Phraser = FrozenPhrases  # its name before gensim 4.0

__all__ = ["ENGLISH_CONNECTOR_WORDS", "FrozenPhrases", "Phraser", "Phrases", "npmi_scorer", "original_scorer"]
