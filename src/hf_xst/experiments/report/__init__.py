"""Reports of studies: tables and plots made from the cells' JSON alone, beside the published numbers."""

from __future__ import annotations

from .reading import METHODS, main_scores
from .write import write_report

__all__ = ["METHODS", "main_scores", "write_report"]
