"""A tagger with a linear-chain conditional random field (Lafferty et al. 2001)."""

from hf_xst.models.crf_tagger.configuration import CrfTaggerConfig
from hf_xst.models.crf_tagger.modeling import CrfTagger

__all__ = ["CrfTagger", "CrfTaggerConfig"]
