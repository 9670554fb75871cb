"""Draw trees and charts: as text for a terminal, as SVG for pages and notebooks."""

from __future__ import annotations

from hf_xst.drawing.arcs import dependency_svg
from hf_xst.drawing.charts import chain_chart_svg, tree_chart_svg
from hf_xst.drawing.tables import heat_svg
from hf_xst.drawing.text import tree_text
from hf_xst.drawing.views import ChartView, Drawing

__all__ = [
    "ChartView",
    "Drawing",
    "chain_chart_svg",
    "dependency_svg",
    "heat_svg",
    "tree_chart_svg",
    "tree_text",
]
