"""Which gold trees can be learned from, and what is wrong with the others.

The policy, fault by fault:

- a head that is blank, no whole number, or beyond the sentence; a blank relation; a word that heads itself; a
  cycle; no root: a fault, in every space of trees;
- several roots: a fault where one root is wanted (``single_root``);
- names of relations (head 0 under another name than ``root``, ``root`` under another head than 0): accepted.
  They are labels to be learned like any other, and real treebanks hold some.

A faulty sentence is refused with its name or skipped and counted, as the caller chooses
(`hf_xst.data.prepare`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hf_xst.data.sentence import BLANK, ConlluSentence

_WHOLE_NUMBER = re.compile(
    "0|[1-9][0-9]*"
)  # int() would take "+3", " 3", "1_0" and digits of other scripts too


def gold_faults(
    heads: Sequence[str | int | None], deprels: Sequence[str | None], *, single_root: bool = True
) -> list[str]:
    """List what keeps a sentence's annotation from being a gold tree; empty if nothing does.

    Args:
        heads: HEAD of each word, as text or as a number.
        deprels: DEPREL of each word.
        single_root: exactly one word may have head 0.
    """
    faults = _value_faults(heads, deprels)
    return faults or _tree_faults([int(head) for head in heads if head is not None], single_root)


def check_gold_tree(sentence: ConlluSentence, *, single_root: bool = True) -> None:
    """Refuse a sentence whose annotation is no gold tree.

    Raises:
        ConlluError: names file, line, sentence and faults.
    """
    faults = gold_faults(sentence.heads, sentence.deprels, single_root=single_root)
    if faults:
        raise sentence.error(f"the gold annotation cannot be used: {'; '.join(faults)}")


def _value_faults(heads: Sequence[str | int | None], deprels: Sequence[str | None]) -> list[str]:
    if len(heads) != len(deprels):
        return [f"{len(heads)} heads for {len(deprels)} relations"]
    if not heads:
        return ["no words"]
    faults = []
    for word, (head, deprel) in enumerate(zip(heads, deprels, strict=True), start=1):
        if head in (None, "", BLANK):
            faults.append(f"word {word}: HEAD is blank")
        elif not _WHOLE_NUMBER.fullmatch(str(head)):
            faults.append(f"word {word}: HEAD {head!r} is no whole number")
        elif int(str(head)) > len(heads):
            faults.append(f"word {word}: HEAD {head} is beyond the {len(heads)} words")
        if deprel in (None, "", BLANK):
            faults.append(f"word {word}: DEPREL is blank")
    return faults


def _tree_faults(heads: Sequence[int], single_root: bool) -> list[str]:
    roots = [word for word, head in enumerate(heads, start=1) if head == 0]
    faults = [f"word {word} is its own head" for word, head in enumerate(heads, start=1) if head == word]
    faults += [f"words {_listed(cycle)} form a cycle" for cycle in _cycles(heads)]
    if not roots:
        faults.append("no word has head 0")
    if len(roots) > 1 and single_root:
        faults.append(f"words {_listed(roots)} have head 0, expected one root")
    return faults


def _cycles(heads: Sequence[int]) -> list[list[int]]:
    """The cycles of two and more words: each word is walked once."""
    cycles, seen_from = [], {0: 0}
    for start in range(1, len(heads) + 1):
        word = start
        while word not in seen_from:
            seen_from[word] = start
            word = heads[word - 1]
        if word and seen_from[word] == start and heads[word - 1] != word:
            cycle = [word]
            while (word := heads[word - 1]) != cycle[0]:
                cycle.append(word)
            cycles.append(sorted(cycle))
    return cycles


def _listed(words: Sequence[int]) -> str:
    return ", ".join(map(str, words))
