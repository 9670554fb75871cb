"""A dependency parser with biaffine scores (Dozat and Manning 2017)."""

from .configuration import BiaffineParserConfig
from .modeling import BiaffineParser

__all__ = ["BiaffineParser", "BiaffineParserConfig"]
