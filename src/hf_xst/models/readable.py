"""What the candidates of a stored chart say, in words."""

from __future__ import annotations

from collections.abc import Sequence

Readable = dict[str, list[list[str]]]


class ReadableCandidates:
    """Spells candidates out for people; a model class whose groups are no words has its own way."""

    @classmethod
    def readable_candidates(
        cls, words: Sequence[str], allowed: Sequence[Sequence[int]], names: Sequence[str]
    ) -> Readable:
        """Spell one sentence's allowed candidates out, in columns with a list of strings for each word.

        Args:
            words: the N words.
            allowed: for each group the candidates that it may have.
            names: the alphabet of the candidates.

        Returns:
            Columns by name; the same ones for every sentence, be it empty.
        """
        spelled = [list(dict.fromkeys(names[each % len(names)] for each in group)) for group in allowed]
        return {"allowed_labels": spelled}
