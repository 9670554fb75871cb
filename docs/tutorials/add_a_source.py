"""Use any tagger as a source: wrap it in a class, and pool it with others.

A tool only has to return the log-probability of each tag for each word. Here a word list with UPOS tags, as a
grammar might have it, becomes a source. To use it on the command line as `--sources words=lexicon:FILE`, a
package registers `Lexicon` under the entry-point group `hf_xst.sources`:

    [project.entry-points."hf_xst.sources"]
    lexicon = "my_package:Lexicon"
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from hf_xst.charts import SourceDistributions
from hf_xst.sources import OtherTagger, SourcePool, SourceSettings


class Lexicon(OtherTagger):
    """A file with one `WORD TAG` per line; unknown words can have any tag."""

    kind = "lexicon"

    def __init__(self, path: str, settings: SourceSettings) -> None:
        entries = (line.split() for line in Path(path).read_text(encoding="utf-8").splitlines())
        self.tag_of = {word: tag for word, tag in entries}
        self.confidence, self.path = settings.confidence, Path(path)
        super().__init__(sorted(set(self.tag_of.values())))

    def log_probs(self, rows: Sequence[Mapping[str, Any]]) -> torch.Tensor:
        """Return (B, N, T): `confidence` on the tag of a known word, the rest spread over the others."""
        tags = self.names[:-2]  # without the boundaries
        probs = torch.full((len(rows), max(len(row["words"]) for row in rows), len(tags)), 1 / len(tags))
        for index, row in enumerate(rows):
            for position, word in enumerate(row["words"]):
                if word in self.tag_of:
                    probs[index, position] = (1 - self.confidence) / (len(tags) - 1)
                    probs[index, position, tags.index(self.tag_of[word])] = self.confidence
        return probs.log()

    def digest(self) -> str:
        """Return the SHA-256 of the file."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def main(folder: str = ".") -> list[str]:
    """Pool two word lists and return the tags of a sentence under the pool."""
    (Path(folder) / "a.txt").write_text("the DET\ndog NOUN\nruns VERB\n", encoding="utf-8")
    (Path(folder) / "b.txt").write_text("the DET\ndog VERB\nfast ADV\nbird NOUN\n", encoding="utf-8")
    settings = SourceSettings(confidence=0.8)
    pool = SourcePool({name: Lexicon(f"{folder}/{name}.txt", settings) for name in "ab"})
    distributions = SourceDistributions(pool.distributions([{"words": ["the", "dog", "runs"]}]))
    best = distributions.with_pooled(distributions.pooled("linear", [0.6, 0.4], 0.0)).best()
    tags: list[str] = pool.kind.decode(best, torch.tensor([3]), pool.names)[0]["upos"]
    return tags


if __name__ == "__main__":
    main()
