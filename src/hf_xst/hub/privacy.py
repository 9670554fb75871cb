"""What must not leave: tokens, paths, user names, training sentences, and what could be a pickle.

Every byte of a file is searched for tokens and for the places of this machine; what a file holds in packed or
escaped form (JSON, Parquet, the header of safetensors) is unpacked and searched as text.
"""

from __future__ import annotations

import getpass
import json
import mmap
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.parquet
import yaml
from huggingface_hub import get_token

from hf_xst.charts.dataset import load_charts
from hf_xst.console import say
from hf_xst.data import load_treebank
from hf_xst.models.pretrained_words import TOKENIZER_FILES
from hf_xst.models.words import WORDS_FILE

# Lists of words, among which any name or word may stand by right.
_WORD_LISTS = frozenset({WORDS_FILE, TOKENIZER_FILES[0]})
_TOKEN = re.compile(
    rb"(?<![A-Za-z0-9])(?:hf_|api_org_)[A-Za-z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}"
)
_ROOTS = (
    "home|Users|root|tmp|var|mnt|srv|opt|media|private|scratch|workspace|work|data|nfs|gpfs|lustre|content|"
    "kaggle|export|usr|etc|storage|cluster|projects?|shared?|Volumes|vol|lab"
)
_PATH = re.compile(
    rf"(?<![\w./~<-])/(?:{_ROOTS})/[^\s\"'`<>|)\]}},;]+"
    r"|(?<![\w./~<>)\]}-])(?<!\]\()/(?:[\w.@+-]+/){2,}[\w.@+-]+"  # three names: a place, in any tree
    r"|(?<!\w)[A-Za-z]:\\+\w[^\\\s\"'`<>|]*\\[^\s\"'`<>|]+|(?<![\w\\])\\\\[\w.-]+\\[\w$.-]+"
    r"|file:/{2,3}[^\s\"'`<>]+"
)
_ABSOLUTE = re.compile(r"/[^/\0]+/[^\0]*|[A-Za-z]:[\\/].*|~/.+")
# Accounts that say nothing about a person, and are words besides.
_NOBODY = frozenset("root user admin ubuntu test tester runner docker jovyan app".split())
_ACCOUNT_VARIABLES = ("USER", "LOGNAME", "SUDO_USER", "USERNAME")
_LEAST_NAME = 3
# Sentences with fewer letters than this are found by chance; a wide letter, as of Chinese, tells more.
_LEAST_LETTERS, _WIDE_LETTER = 24, 3
_LEAST_START = _LEAST_LETTERS // _WIDE_LETTER
_MARKUP = re.compile(r"<[^>]*>")
_LARGEST_HEADER = 100_000_000


class Leak(NamedTuple):
    """Something private in a file that was to go."""

    file: str
    what: str


class Text(NamedTuple):
    """A readable part of a file; among mere words, names and paths may stand by right."""

    content: str
    is_words: bool
    values: Sequence[str] = ()


class Sentences:
    """Training sentences, found in a text whatever its spaces, case and punctuation.

    Args:
        sentences: lists of words; those of fewer than 24 letters and digits do not count, wide letters
            being worth three.

    Attributes:
        too_short: how many do not count.
    """

    def __init__(self, sentences: Iterable[Sequence[str]] = ()) -> None:
        self._by_start: dict[str, list[str]] = {}
        self.too_short = 0
        for words in sentences:
            letters = _letters("".join(words))
            if _worth(letters) >= _LEAST_LETTERS:
                self._by_start.setdefault(letters[:_LEAST_START], []).append(letters)
            else:
                self.too_short += 1

    def found_in(self, text: str) -> str | None:
        """Return the start of a training sentence that stands in a text, or None."""
        if not self._by_start:
            return None
        letters = _letters(text)
        for place in range(len(letters) - _LEAST_START + 1):
            for whole in self._by_start.get(letters[place : place + _LEAST_START], ()):
                if letters.startswith(whole, place):
                    return whole[:_LEAST_LETTERS]
        return None


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _worth(letters: str) -> int:
    return sum(_WIDE_LETTER if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in letters)


@dataclass(frozen=True)
class Secrets:
    """What is private here.

    Attributes:
        anywhere: strings that may stand nowhere, and what they are.
        names: user names, which may stand in lists of words alone.
        sentences: training sentences.
    """

    anywhere: Mapping[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    sentences: Sentences = field(default_factory=Sentences)

    @classmethod
    def here(
        cls, folder: Path, account: str, sentences: Iterable[Sequence[str]] = (), token: str | None = None
    ) -> Secrets:
        """Collect what is private on this machine.

        Args:
            folder: what is to be pushed; its place is private.
            account: the account it goes to, whose name is no secret even if it is the user's here.
            sentences: training sentences.
            token: a token that is used beside that of the login.
        """
        home = Path.home()
        places = {
            home: "the home folder",
            Path.cwd(): "the working folder",
            folder.resolve(): "the place of its folder here",
        }
        anywhere = {str(place): what for place, what in places.items() if len(place.parts) > 2}
        for known in (get_token(), token):
            if known and (known.startswith("hf_") or len(known) > 8):
                anywhere[known] = "a token"
        names = {home.name, *(os.environ.get(key, "") for key in _ACCOUNT_VARIABLES)}
        with suppress(KeyError, OSError):  # a container's user may have no entry
            names.add(getpass.getuser())
        telling = {name for name in names if len(name) >= _LEAST_NAME and name.lower() not in _NOBODY}
        return cls(anywhere, frozenset(telling - {account}), Sentences(sentences))


def find_leaks(files: Mapping[str, Path], secrets: Secrets) -> list[Leak]:
    """Search files for what must not leave.

    Args:
        files: by their names in the repository.
        secrets: what is private here.

    Returns:
        What was found, each kind once a file.
    """
    return [
        Leak(name, what)
        for name, path in files.items()
        for what in dict.fromkeys(_leaks(name, path, secrets))
    ]


def _leaks(name: str, path: Path, secrets: Secrets) -> Iterator[str]:
    yield from _in_bytes(path, secrets)
    try:
        texts = list(_texts(name, path))
    except (ValueError, OSError) as problem:
        yield f"it is no {path.suffix.removeprefix('.')} file, or a broken one ({str(problem)[:80]})"
        return
    for text in texts:
        yield from _in_text(text, secrets)


def _in_bytes(path: Path, secrets: Secrets) -> Iterator[str]:
    if not path.stat().st_size:
        return
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if _TOKEN.search(content):
            yield "a token"
        for secret, what in secrets.anywhere.items():
            if content.find(secret.encode()) >= 0:
                yield what


def _in_text(text: Text, secrets: Secrets) -> Iterator[str]:
    content = text.content
    if _TOKEN.search(content.encode("utf-8", "surrogatepass")):
        yield "a token"
    for secret, what in secrets.anywhere.items():
        if secret in content:
            yield what
    if not text.is_words:
        found = _PATH.search(content)
        for value in [found[0]] if found else filter(_ABSOLUTE.fullmatch, text.values):
            yield f"an absolute path ({_short(value)})"
        for name in secrets.names:
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", content):
                yield f"the user name {name}"
    for part in text.values if text.is_words else [content]:
        if start := secrets.sentences.found_in(part):
            yield f"a training sentence ({start}...)"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- reading ------------------------------------------------------------------------------------------


def _texts(name: str, path: Path) -> Iterator[Text]:
    """Give what can be read of a file; pictures in pixels have nothing to read."""
    if path.suffix == ".safetensors":
        yield Text(_safetensors_header(path), is_words=False)
    elif path.suffix == ".parquet":
        yield from _parquet_texts(path)
    elif path.suffix == ".json":
        strings = list(_strings(json.loads(path.read_text(encoding="utf-8"))))
        is_words = Path(name).name in _WORD_LISTS
        yield Text("\n".join(strings), is_words, strings)
    elif path.suffix != ".png":
        content = path.read_text(encoding="utf-8")
        yield Text(content, is_words=False)
        yield Text(_MARKUP.sub(" ", content), is_words=False)


def _strings(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield str(key)
            yield from _strings(value)
    elif isinstance(content, list):
        for value in content:
            yield from _strings(value)


def _safetensors_header(path: Path) -> str:
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if not 2 <= size <= min(_LARGEST_HEADER, path.stat().st_size - 8):
            raise ValueError("it does not begin with the header of safetensors")
        header = json.loads(stream.read(size).decode("utf-8"))
    return "\n".join(_strings(header))


def _parquet_texts(path: Path) -> Iterator[Text]:
    file = pyarrow.parquet.ParquetFile(path)
    for source in (file.metadata.metadata, file.schema_arrow.metadata):
        for key, value in (source or {}).items():
            if key != b"ARROW:schema":  # stands there in base64, and again in the open
                shown = f"{key.decode('utf-8', 'replace')}\n{value.decode('utf-8', 'replace')}"
                yield Text(shown, is_words=False)
    for batch in file.iter_batches():
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            yield Text("\n".join(_arrow_strings(values)), is_words=column != "sent_id")


def _arrow_strings(values: Any) -> Iterator[str]:
    kind = values.type
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        yield from _arrow_strings(values.flatten())
    elif pyarrow.types.is_dictionary(kind):
        yield from _arrow_strings(values.dictionary_decode())
    elif pyarrow.types.is_struct(kind):
        for part in values.flatten():
            yield from _arrow_strings(part)
    elif pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        yield from (value for value in values.to_pylist() if value)


_CONFIG, _EVALUATION = "run/config.yaml", "run/evaluate-config.yaml"
# Arguments of commands that say which sentences are read.
_NAMED = ("charts", "treebank", "dev_treebank")


def training_sentences(folder: Path, *, unsearched: bool = False) -> list[list[str]]:
    """Read the sentences that the model in a folder was trained or tested on.

    Args:
        folder: what train-source or transfer wrote; its `run/config.yaml` says where the sentences are, and
            `run/evaluate-config.yaml`, if it was evaluated there, where those of the test are.
        unsearched: warn of sentences that cannot be read any more, or are not known, instead of refusing.

    Returns:
        Lists of words.

    Raises:
        ValueError: some cannot be read any more, or it is not recorded which they were.
    """
    if not (folder / _CONFIG).is_file():
        _tell(
            f"it is not recorded what this was trained on (there is no {_CONFIG}), so that the files cannot "
            "be searched for training sentences",
            unsearched=unsearched,
        )
    found: list[list[str]] = []
    for place in (folder / _CONFIG, folder / _EVALUATION):
        config = yaml.safe_load(place.read_text(encoding="utf-8")) or {} if place.is_file() else {}
        for name in _NAMED:
            try:
                found += [list(words) for rows in _sentences(name, config) for words in rows]
            except (ValueError, OSError) as problem:
                _tell(
                    f"the sentences of {name} {config[name]} cannot be read again, so that the files cannot "
                    f"be searched for them ({' '.join(str(problem).split())})",
                    unsearched=unsearched,
                )
    return found


def _tell(what: str, *, unsearched: bool) -> None:
    if not unsearched:
        raise ValueError(f"{what}; bring them back, or push without that with --unsearched")
    say(what, "yellow")


def _sentences(name: str, config: dict[str, Any]) -> Iterator[Sequence[Sequence[str]]]:
    source = config.get(name)
    if source and name == "charts":
        yield load_charts(source)[0]["words"]
    elif source:
        for rows in load_treebank(source, data_roots=config.get("data") or ()).values():
            yield rows["words" if "words" in rows.column_names else "tokens"]
