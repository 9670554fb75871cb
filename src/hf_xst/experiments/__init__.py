"""Experiments as graphs of cells whose results are kept, and reports made from those results alone."""
