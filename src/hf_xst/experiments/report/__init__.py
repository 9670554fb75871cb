"""Reports of studies: tables and plots made from the cells' JSON alone, beside the published numbers."""

from __future__ import annotations

from hf_xst.experiments.report.reading import METHODS, main_scores
from hf_xst.experiments.report.write import write_report

__all__ = ["METHODS", "main_scores", "write_report"]
