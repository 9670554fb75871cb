"""The way to the structure of independent groups."""

from __future__ import annotations

import sys
from pathlib import Path

STRUCTURES = str(Path(__file__).resolve().parent.parent / "structures")
if STRUCTURES not in sys.path:
    sys.path.append(STRUCTURES)
