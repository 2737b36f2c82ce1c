"""What is learned from: corpora, the directions each is learned in, and how often.

Files alone are a mix of one row each; a file of TOML says more:

    directions = ["en-de", "de-en"]

    [[corpus]]
    files = ["europarl.en-de.tsv.xz"]      # beside the TOML file; the name tells the languages, or `pair` does
    repetitions = 2                        # each pair twice; 0.5 takes half of them
    directions = ["en-de"]                 # fewer than all
    domain = "docs"                        # a tag behind that of the language
    terms = "CC BY 4.0"                    # for the card of a model that was trained on it, as `attribution` is
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qkv.config import Config, TextConfig
from qkv.errors import ConfigError, StorageError
from qkv.text.files import PairFile, pair_files
from qkv.text.languages import Direction, named_pair, parse_directions

_DOMAIN = re.compile(r"[a-z0-9][a-z0-9_-]*")
_MOST_REPETITIONS = 100


@dataclass(frozen=True)
class Ingredient:
    """A row of a mix: files of one pair of languages, and how they are used."""

    files: tuple[Path, ...]
    pair: Direction | None = None
    """The languages of the two columns or files; None where nobody said, and one untold direction is all there is."""
    directions: tuple[Direction, ...] = ()
    repetitions: float = 1.0
    domain: str | None = None
    attribution: str | None = None
    terms: str | None = None

    def __post_init__(self) -> None:
        name = ", ".join(file.name for file in self.files)
        if not 0 < self.repetitions <= _MOST_REPETITIONS:
            raise ConfigError(
                f"repetitions of {name} are {self.repetitions}; they must be above 0 and {_MOST_REPETITIONS} at most"
            )
        if self.domain is not None and not _DOMAIN.fullmatch(self.domain):
            raise ConfigError(f"the domain of {name} is {self.domain!r}; use small letters, digits, - and _")

    def parts(self) -> list[PairFile]:
        return pair_files(self.files)


@dataclass(frozen=True)
class Mix:
    """All rows."""

    rows: tuple[Ingredient, ...]
    tags_one: bool = False
    """Whether a tag says which language is asked for where that is always the same."""
    untaught: tuple[Direction, ...] = ()
    """What the mix names and no row of it teaches."""

    @classmethod
    def of(cls, files: Sequence[Path], text: TextConfig) -> Mix:
        """What files stand for: themselves, or what a file of TOML says."""
        asked = parse_directions(text.directions)
        recipes = [file for file in files if file.suffix == ".toml"]
        if recipes and len(files) > 1:
            raise ConfigError(f"{recipes[0]} says what is to be mixed; name all files there, and give none beside it")
        rows, named = _read(files[0]) if recipes else ([Ingredient(part.files) for part in pair_files(files)], ())
        directions = asked or tuple(dict.fromkeys(itertools.chain.from_iterable(row.directions for row in rows)))
        rows = _paired(rows, directions, text)
        taught = {one for row in rows for one in row.directions if row.pair and frozenset(one) == frozenset(row.pair)}
        untaught = tuple(one for one in named if one not in taught)
        mix = cls(tuple(_directed(rows, directions, text)), text.tagged, untaught)
        if text.tagged and rows and not mix.directions:
            raise ConfigError(
                f"which languages {mix.files[0]} has is not known, for a tag; name it like corpus.en-de.tsv, or give "
                "--from and --to"
            )
        return mix

    def beside(self, valid: Sequence[Path], test: Sequence[Path], text: TextConfig) -> Mix:
        """What validation files stand for where these rows are learned from; they and test files must go with them."""
        mix = self._ordering(Mix.of(valid, text))
        learned = {frozenset(row.pair) for row in self.rows if row.pair is not None}
        for part in pair_files(mix.files) if self._told_by_names else ():
            named = named_pair(part.files)
            if named is not None and frozenset(named) not in learned:
                raise ConfigError(
                    f"{part.files[0]} is {named}, and nothing is to be learned between these languages; "
                    f"the directions are {', '.join(map(str, self.directions))}"
                )
        tested = [Ingredient(part.files, named_pair(part.files)) for part in pair_files(test)]
        alike = [row for row in tested if row.pair is not None and frozenset(row.pair) in learned]
        _require_one_order([*self.rows, *mix.rows, *alike])
        return mix

    def _ordering(self, mix: Mix) -> Mix:
        """The mix, with columns in the order of these where nothing tells theirs and there is but one."""
        orders = {row.pair for row in self.rows}
        if len(orders) != 1 or None in orders:
            return mix
        (order,) = orders
        return Mix(
            tuple(
                row
                if any(named_pair(part.files) for part in row.parts())
                else dataclasses.replace(row, pair=order, directions=self.directions)
                for row in mix.rows
            ),
            self.tags_one,
        )

    @property
    def _told_by_names(self) -> bool:
        """Whether names of files tell the languages that are in them, here and so in others."""
        return all(
            row.pair is not None and {named_pair(part.files) for part in row.parts()} == {row.pair} for row in self.rows
        )

    @property
    def files(self) -> list[Path]:
        return [file for row in self.rows for file in row.files]

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(dict.fromkeys(direction for row in self.rows for direction in row.directions))

    @property
    def domains(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.domain for row in self.rows if row.domain is not None))

    @property
    def is_plain(self) -> bool:
        """Whether pairs are learned as they stand, once."""
        return not self.is_tagged and all(
            row.repetitions == 1 and row.domain is None and (not row.directions or row.pair in row.directions)
            for row in self.rows
        )

    @property
    def is_tagged(self) -> bool:
        """Whether a source begins with the language that is asked for."""
        return len(self.directions) > 1 or self.tags_one

    @property
    def tags_before_a_source(self) -> int:
        """How many there are at most."""
        return self.is_tagged + bool(self.domains)

    def applied_to(self, config: Config) -> Config:
        """The config with the languages that the mix tells."""
        if self.is_tagged:
            languages: dict[str, str | None] = {
                "directions": ",".join(map(str, self.directions)), "source_language": None, "target_language": None
            }  # fmt: skip
        elif self.directions:
            (only,) = self.directions
            languages = {"directions": None, "source_language": only.source, "target_language": only.target}
        else:
            languages = {}
        return config.with_changes(text={**languages, "domains": ",".join(self.domains) or None})

    def described(self) -> list[dict[str, Any]]:
        """What decides about the data, for its fingerprint."""
        return [
            {
                "files": len(row.files),
                "pair": str(row.pair),
                "directions": ",".join(map(str, row.directions)),
                "repetitions": row.repetitions,
                "domain": row.domain,
            }
            for row in self.rows
        ]


def settled(files: Sequence[Path], config: Config) -> Config:
    """The config with the languages that files, or the mix they name, tell."""
    return Mix.of(files, config.text).applied_to(config)


def _read(path: Path) -> tuple[list[Ingredient], tuple[Direction, ...]]:
    """The rows of a file, and the directions that it names for all of them."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no such file: {path}") from error
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    unknown = sorted(content.keys() - {"directions", "corpus"})
    if unknown or not isinstance(content.get("corpus"), list) or not content["corpus"]:
        what = f"knows no {unknown[0]!r}" if unknown else "has no [[corpus]]"
        raise ConfigError(f"{path} {what}; a mix has directions, and a [[corpus]] with files for each corpus")
    directions = _directions(content.get("directions", ()), path)
    return [_row(one, path, directions) for one in content["corpus"]], directions


_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "files": list, "pair": str, "directions": (list, str), "repetitions": (int, float), "domain": str,
    "attribution": str, "terms": str,
}  # fmt: skip


def _row(values: Mapping[str, Any], path: Path, directions: tuple[Direction, ...]) -> Ingredient:
    for name, value in values.items():
        if name not in _FIELDS:
            raise ConfigError(f"{path}: a corpus has no {name!r}; it has {', '.join(_FIELDS)}")
        if not isinstance(value, _FIELDS[name]) or isinstance(value, bool):
            raise ConfigError(f"{path}: {name} cannot be {value!r}")
    if not values.get("files") or not all(isinstance(file, str) for file in values["files"]):
        raise ConfigError(f'{path}: a corpus needs files, such as files = ["train.en-de.tsv"]')
    own = _directions(values["directions"], path) if "directions" in values else directions
    others = {name: values[name] for name in ("domain", "attribution", "terms") if name in values}
    return Ingredient(
        tuple(path.parent / file for file in values["files"]),
        Direction.parse(values["pair"]) if "pair" in values else None,
        own,
        float(values.get("repetitions", 1)),
        **others,
    )


def _directions(given: Iterable[str] | str, path: Path) -> tuple[Direction, ...]:
    some = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(one, str) for one in some):
        raise ConfigError(f'{path}: directions are written as ["en-de", "de-en"]')
    return parse_directions(",".join(some))


def _paired(rows: Iterable[Ingredient], directions: Sequence[Direction], text: TextConfig) -> list[Ingredient]:
    """Each row with the languages of its columns, as far as anything tells them."""
    # Where all that is asked for is between two languages, the first direction tells the order of the columns.
    only = directions[0] if directions and len({frozenset(one) for one in directions}) == 1 else None
    result = []
    for row in rows:
        pair = _columns(row.pair or _named(row, text) or only, text)
        if pair is None and directions:
            raise ConfigError(
                f"which languages {row.files[0]} has is not known; name it like corpus.en-de.tsv, or give its pair: "
                "in a mix, or by --from and --to"
            )
        result.append(dataclasses.replace(row, pair=pair))
    _require_one_order(result)
    return result


def _named(row: Ingredient, text: TextConfig) -> Direction | None:
    """The languages that the names of a row's files tell."""
    names = {named_pair(part.files) for part in row.parts()} - {None}
    if len(names) < 2:
        return next(iter(names), None)
    if _between(text, names):
        raise ConfigError(f"{', '.join(map(str, row.files))} are of different languages; give each a row of its own")
    return None


def _between(text: TextConfig, names: Iterable[Direction | None]) -> bool:
    """Whether names are of the languages that were asked for, or none were: otherwise they mean something else."""
    asked = {text.source_language, text.target_language} - {None}
    return any(asked <= {*name} for name in names if name is not None)


def _columns(pair: Direction | None, text: TextConfig) -> Direction | None:
    """The languages of columns, by what their names tell and what was asked for, which may be to learn them the other
    way round; who asks for languages that names do not have tells those of the columns."""
    if pair is not None and _between(text, [pair]):
        return pair
    source = text.source_language or (pair.source if pair else None)
    target = text.target_language or (pair.target if pair else None)
    return Direction(source, target) if source and target else None


def _asked(pair: Direction, text: TextConfig) -> Direction:
    """The way these columns are to be learned where no directions were given."""
    turned = text.source_language == pair.target or text.target_language == pair.source
    return Direction(pair.target, pair.source) if turned else pair


def _require_one_order(rows: Iterable[Ingredient]) -> None:
    """Whether two pairs are the same, and what was held out, is asked of columns: they must be the same languages."""
    seen: dict[frozenset[str], Ingredient] = {}
    for row in rows:
        if row.pair is None:
            continue
        before = seen.setdefault(frozenset(row.pair), row)
        if before.pair != row.pair:
            raise ConfigError(
                f"{row.files[0]} is {row.pair} and {before.files[0]} is {before.pair}; "
                "swap the columns of one, or the order of its files: directions say which way they are learned"
            )


def _directed(rows: Sequence[Ingredient], directions: Sequence[Direction], text: TextConfig) -> Iterable[Ingredient]:
    """Each row with those of the directions that are between its languages."""
    told = [row for row in rows if row.pair is not None]
    if told and len(told) < len(rows) and len({row.pair for row in told}) > 1:
        missing = next(row for row in rows if row.pair is None)
        raise ConfigError(f"which languages {missing.files[0]} has is not known; name it like corpus.en-de.tsv")
    default = told[0].pair if told else None
    for row in rows:
        pair = row.pair or default
        if pair is None:
            yield row
            continue
        wanted = row.directions or directions or (_asked(pair, text),)
        allowed = tuple(one for one in wanted if not directions or one in directions)
        own = tuple(one for one in allowed if frozenset(one) == frozenset(pair))
        if not own:
            # Only what was asked for from outside can allow less than the mix itself does.
            less = any(frozenset(one) == frozenset(pair) for one in wanted)
            limit = ", and no others: those of --directions, or of the model that is adapted" if less else ""
            raise ConfigError(
                f"{row.files[0]} is {pair}, and nothing is to be learned between these languages; "
                f"the directions are {', '.join(map(str, allowed or directions))}{limit}"
            )
        yield dataclasses.replace(row, pair=pair, directions=own)
