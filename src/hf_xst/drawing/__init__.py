"""Drawings of trees and charts."""

from __future__ import annotations

from hf_xst.drawing.text import outline_text, tree_text

__all__ = ["outline_text", "tree_text"]
