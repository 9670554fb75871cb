"""Search files for private content before they are pushed: tokens, paths, user names, training sentences.

Every byte is searched for tokens and for paths of this machine. Packed or escaped content (JSON, Parquet, the
header of safetensors) is unpacked and searched as text; a file that is not what its suffix says is reported.
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

# Vocabularies, which may contain any name or word.
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
    r"|(?<![\w./~<>)\]}-])(?<!\]\()/(?:[\w.@+-]+/){2,}[\w.@+-]+"  # any absolute path of three names
    r"|(?<!\w)[A-Za-z]:\\+\w[^\\\s\"'`<>|]*\\[^\s\"'`<>|]+|(?<![\w\\])\\\\[\w.-]+\\[\w$.-]+"
    r"|file:/{2,3}[^\s\"'`<>]+"
)
_ABSOLUTE = re.compile(r"/[^/\0]+/[^\0]*|[A-Za-z]:[\\/].*|~/.+")
# Common account names that identify nobody.
_GENERIC_USERS = frozenset("root user admin ubuntu test tester runner docker jovyan app".split())
_USER_VARIABLES = ("USER", "LOGNAME", "SUDO_USER", "USERNAME")
_MIN_USER_NAME = 3
# A sentence with fewer letters may occur by chance; a wide letter, as in Chinese, counts three.
_MIN_LETTERS, _WIDE_LETTER = 24, 3
_KEY_LENGTH = _MIN_LETTERS // _WIDE_LETTER
_MARKUP = re.compile(r"<[^>]*>")
_MAX_HEADER = 100_000_000


class _Text(NamedTuple):
    """Readable content of a file; in lists of words, names and paths are allowed."""

    content: str
    is_words: bool = False
    values: Sequence[str] = ()


class Sentences:
    """Training sentences, searched for in texts regardless of spacing, case and punctuation.

    Args:
        sentences: lists of words; sentences of fewer than 24 letters and digits are ignored, where wide
            letters count three.

    Attributes:
        ignored: number of ignored sentences.
    """

    def __init__(self, sentences: Iterable[Sequence[str]] = ()) -> None:
        self._by_key: dict[str, list[str]] = {}
        self.ignored = 0
        for words in sentences:
            letters = _letters("".join(words))
            wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in letters)
            if len(letters) + (_WIDE_LETTER - 1) * wide >= _MIN_LETTERS:
                self._by_key.setdefault(letters[:_KEY_LENGTH], []).append(letters)
            else:
                self.ignored += 1

    def find_in(self, text: str) -> str | None:
        """Return the beginning of a training sentence that a text contains, or None."""
        if not self._by_key:
            return None
        letters = _letters(text)
        for start in range(len(letters) - _KEY_LENGTH + 1):
            for sentence in self._by_key.get(letters[start : start + _KEY_LENGTH], ()):
                if letters.startswith(sentence, start):
                    return sentence[:_MIN_LETTERS]
        return None


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


@dataclass(frozen=True)
class Secrets:
    """Private strings and sentences.

    Attributes:
        strings: strings that are allowed nowhere, with a description.
        users: user names, allowed in lists of words only.
        sentences: training sentences.
    """

    strings: Mapping[str, str] = field(default_factory=dict)
    users: frozenset[str] = frozenset()
    sentences: Sentences = field(default_factory=Sentences)

    @classmethod
    def collect(
        cls, folder: Path, account: str, sentences: Iterable[Sequence[str]] = (), token: str | None = None
    ) -> Secrets:
        """Collect what is private on this machine.

        Args:
            folder: the folder that is pushed; its path is private.
            account: the account it is pushed to, whose name is public.
            sentences: training sentences.
            token: a token in addition to that of the login.
        """
        home = Path.home()
        paths = {home: "home folder", Path.cwd(): "working folder", folder.resolve(): "folder's own path"}
        strings = {str(path): f"the {name}" for path, name in paths.items() if len(path.parts) > 2}
        for secret in (get_token(), token):
            if secret and (secret.startswith("hf_") or len(secret) > 8):
                strings[secret] = "a token"
        users = {home.name, *(os.environ.get(key, "") for key in _USER_VARIABLES)}
        with suppress(KeyError, OSError):  # the user of a container may have no entry
            users.add(getpass.getuser())
        public = _GENERIC_USERS | {account.lower()}
        users = {name for name in users if len(name) >= _MIN_USER_NAME and name.lower() not in public}
        return cls(strings, frozenset(users), Sentences(sentences))

    def find_in(self, files: Mapping[str, Path]) -> list[str]:
        """Search files, given by their names in the repository, and list `FILE: LEAK` without duplicates."""
        leaks = (f"{name}: {leak}" for name, path in files.items() for leak in self._leaks(name, path))
        return list(dict.fromkeys(leaks))

    def _leaks(self, name: str, path: Path) -> Iterator[str]:
        if path.stat().st_size:
            with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                yield from self._strings_in(content)
        try:
            for text in _texts(name, path):
                yield from self._in_text(text)
        except (ValueError, OSError) as error:
            yield f"not a valid {path.suffix.removeprefix('.')} file ({str(error)[:80]})"

    def _strings_in(self, content: bytes | mmap.mmap) -> Iterator[str]:
        if _TOKEN.search(content):
            yield "a token"
        for secret, description in self.strings.items():
            if content.find(secret.encode()) >= 0:
                yield description

    def _in_text(self, text: _Text) -> Iterator[str]:
        content = text.content
        yield from self._strings_in(content.encode("utf-8", "surrogatepass"))
        if not text.is_words:
            path = _PATH.search(content)
            for value in [path[0]] if path else filter(_ABSOLUTE.fullmatch, text.values):
                yield f"an absolute path ({value if len(value) <= 60 else f'{value[:57]}...'})"
            for name in self.users:
                if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", content):
                    yield f"the user name {name}"
        for value in text.values if text.is_words else [content]:
            if sentence := self.sentences.find_in(value):
                yield f"a training sentence ({sentence}...)"


# -- reading files ---------------------------------------------------------------------------------------


def _texts(name: str, path: Path) -> Iterator[_Text]:
    """Yield the readable content of a file; PNG pictures have none."""
    if path.suffix == ".safetensors":
        yield _Text(_safetensors_header(path))
    elif path.suffix == ".parquet":
        yield from _parquet_texts(path)
    elif path.suffix == ".json":
        strings = list(_strings(json.loads(path.read_text(encoding="utf-8"))))
        yield _Text("\n".join(strings), Path(name).name in _WORD_LISTS, strings)
    elif path.suffix != ".png":
        content = path.read_text(encoding="utf-8")
        yield _Text(content)
        yield _Text(_MARKUP.sub(" ", content))


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
        if not 2 <= size <= min(_MAX_HEADER, path.stat().st_size - 8):
            raise ValueError("it lacks the header of safetensors")
        header = json.loads(stream.read(size).decode("utf-8"))
    return "\n".join(_strings(header))


def _parquet_texts(path: Path) -> Iterator[_Text]:
    file = pyarrow.parquet.ParquetFile(path)
    for metadata in (file.metadata.metadata, file.schema_arrow.metadata):
        for key, value in (metadata or {}).items():
            if key != b"ARROW:schema":  # in base64; its content is also in the decoded metadata
                yield _Text(f"{key.decode('utf-8', 'replace')}\n{value.decode('utf-8', 'replace')}")
    for batch in file.iter_batches():
        for column, values in zip(batch.schema.names, batch.columns, strict=True):
            if "string" in str(values.type):  # also in lists, structures and dictionaries
                yield _Text("\n".join(_strings(values.to_pylist())), is_words=column != "sent_id")


# -- training sentences ----------------------------------------------------------------------------------


def training_sentences(folder: Path, *, unsearched: bool = False) -> list[list[str]]:
    """Read the sentences that the model in a folder was trained, tuned or tested on.

    Args:
        folder: output of train-source or transfer; `run/config.yaml` and, after `evaluate`,
            `run/evaluate-config.yaml` record where the sentences are.
        unsearched: warn about sentences that are unknown or cannot be read, instead of raising an error.

    Returns:
        Lists of words.

    Raises:
        ValueError: sentences are unknown or cannot be read.
    """
    paths = [folder / "run/config.yaml", folder / "run/evaluate-config.yaml"]
    if not paths[0].is_file():
        _report(
            "the training data is not recorded (run/config.yaml is missing), so the files cannot be searched "
            "for training sentences",
            unsearched,
        )
    sentences: list[list[str]] = []
    for path in filter(Path.is_file, paths):
        options = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        for key in ("charts", "treebank", "dev_treebank"):
            try:
                sentences += [list(words) for rows in _read_sentences(key, options) for words in rows]
            except (ValueError, OSError) as error:
                _report(
                    f"the sentences of {key} {options[key]} cannot be read any more, so the files cannot be "
                    f"searched for them ({' '.join(str(error).split())})",
                    unsearched,
                )
    return sentences


def _report(problem: str, unsearched: bool) -> None:
    if not unsearched:
        raise ValueError(f"{problem}; restore them, or push without this search by --unsearched")
    say(problem, "yellow")


def _read_sentences(key: str, options: Mapping[str, Any]) -> Iterator[Sequence[Sequence[str]]]:
    source = options.get(key)
    if source and key == "charts":
        yield load_charts(source)[0]["words"]
    elif source:
        for rows in load_treebank(source, data_roots=options.get("data") or ()).values():
            yield rows["words" if "words" in rows.column_names else "tokens"]
