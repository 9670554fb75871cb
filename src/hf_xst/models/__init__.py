"""Models whose output is a distribution over structures, registered with the Auto classes."""

from hf_xst.models.configuration import BiaffineParserConfig, CrfTaggerConfig, StructuredConfig
from hf_xst.models.kinds import KINDS
from hf_xst.models.modeling import StructuredModel, StructuredOutput, register
from hf_xst.models.parser import BiaffineParser
from hf_xst.models.tagger import CrfTagger

__all__ = [
    "KINDS",
    "BiaffineParser",
    "BiaffineParserConfig",
    "CrfTagger",
    "CrfTaggerConfig",
    "StructuredConfig",
    "StructuredModel",
    "StructuredOutput",
    "register",
]
