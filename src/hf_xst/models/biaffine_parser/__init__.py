"""A dependency parser with biaffine scores (Dozat and Manning 2017)."""

from hf_xst.models.biaffine_parser.configuration import BiaffineParserConfig
from hf_xst.models.biaffine_parser.modeling import BiaffineParser

__all__ = ["BiaffineParser", "BiaffineParserConfig"]
