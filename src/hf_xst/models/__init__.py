"""Models whose output is a distribution over structures, registered with the Auto classes."""

from hf_xst.models.base import StructuredModel, StructuredOutput, register
from hf_xst.models.biaffine_parser import BiaffineParser, BiaffineParserConfig
from hf_xst.models.configuration import StructuredConfig
from hf_xst.models.crf_tagger import CrfTagger, CrfTaggerConfig

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
