"""A tagger with a linear-chain conditional random field (Lafferty et al. 2001)."""

from .configuration import CrfTaggerConfig
from .modeling import CrfTagger

__all__ = ["CrfTagger", "CrfTaggerConfig"]
