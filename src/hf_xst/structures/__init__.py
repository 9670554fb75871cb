"""Distributions over trees and tag sequences: sums, marginals, best structures, samples, votes."""

from hf_xst.structures.base import Structure
from hf_xst.structures.chain import LinearChainCRF
from hf_xst.structures.constituency import ConstituencyTreeCRF
from hf_xst.structures.dependency import DependencyTreeCRF

__all__ = ["ConstituencyTreeCRF", "DependencyTreeCRF", "LinearChainCRF", "Structure"]
