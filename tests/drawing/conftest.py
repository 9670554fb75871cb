from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path += [  # small ready models and structures live there
    str(TESTS / name) for name in ("structures", "models", "training") if str(TESTS / name) not in sys.path
]
