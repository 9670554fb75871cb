"""The way to the structure of independent groups, and to helpers beside the tests."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(path) for path in (HERE, HERE.parent / "structures") if str(path) not in sys.path]
