"""Models whose output is a distribution over structures, registered with the Auto classes."""

from .base import StructuredModel, StructuredOutput, register
from .biaffine_parser import BiaffineParser, BiaffineParserConfig
from .configuration import StructuredConfig
from .crf_tagger import CrfTagger, CrfTaggerConfig

register(BiaffineParserConfig, BiaffineParser)
register(CrfTaggerConfig, CrfTagger)

__all__ = [
    "BiaffineParser",
    "BiaffineParserConfig",
    "CrfTagger",
    "CrfTaggerConfig",
    "StructuredConfig",
    "StructuredModel",
    "StructuredOutput",
]
