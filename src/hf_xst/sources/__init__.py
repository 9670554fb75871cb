"""Sources: anything that can annotate; pooling, agreement, weight averaging, and making charts with them."""

from hf_xst.sources.base import OtherParser, OtherTagger, Source, tag_distribution, tree_distribution
from hf_xst.sources.loading import SourceSettings, load_source
from hf_xst.sources.pool import SourcePool

__all__ = [
    "OtherParser",
    "OtherTagger",
    "Source",
    "SourcePool",
    "SourceSettings",
    "load_source",
    "tag_distribution",
    "tree_distribution",
]
