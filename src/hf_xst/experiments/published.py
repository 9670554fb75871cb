"""The published scores on the test files (Kurniawan et al. 2021, table of full results).

Percent; LAS without punctuation for parsing, accuracy for tagging; mean over five seeds.
"""

from __future__ import annotations

PUBLISHED_TEST: dict[str, dict[str, dict[str, float]]] = {
    "id": {
        "parser": {"majority": 59.0, "union": 57.4, "pool": 61.6},
        "tagger": {"majority": 77.9, "union": 79.9, "pool": 81.0},
    },
    "hr": {
        "parser": {"majority": 57.4, "union": 62.2, "pool": 64.3},
        "tagger": {"majority": 66.7, "union": 58.4, "pool": 68.5},
    },
}
