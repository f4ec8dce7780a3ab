"""From TOML to the values of a policy: layers that are read one by one and laid over each other."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path

from fairlane.careful_files import read_file
from fairlane.model.errors import Invalid, did_you_mean
from fairlane.model.instant import Micros, show_duration
from fairlane.model.project import Budget
from fairlane.model.record import dataclass, field, replace
from fairlane.model.values import Values, shown, wrong
from fairlane.policy import schema
from fairlane.policy.schema import Kind

DEFAULT_PRESET = "balanced"
#: The shipped pages; `importlib.resources` would cost every command ten milliseconds.
PRESETS = Path(__file__).with_name("presets")
#: A policy is a page; a file beyond this size is not one.
FILE_BYTES_MAX = 1_000_000

_AT = r" \(at (?:line (\d+), column \d+|end of document)\)$"
_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_LINE = re.compile(rf"\s*(?:(\[\[?)\s*({_DOTTED})\s*\]|({_DOTTED})\s*=)")


@dataclass(frozen=True, slots=True)
class Layer:
    """The keys that one file, preset or override sets; None where it removes one."""

    origin: str  # `preset NAME`, a file, `override`
    values: Mapping[str, object]
    lines: Mapping[str, int] = field(default_factory=dict)
    preset: str = ""  # the preset's name, when it is one

    def place(self, key: str) -> str:
        """The file with the line of a key where that is known."""
        line = find_line(self.lines, key)
        return f"{self.origin}:{line}" if line else self.origin


@dataclass(slots=True)
class _Reading:
    """One layer while it is read; problems are gathered so that a check can show all of them."""

    origin: str
    lines: Mapping[str, int]
    values: dict[str, object] = field(default_factory=dict)
    problems: list[Invalid] = field(default_factory=list)

    def refuse(self, key: str, what: str, hint: str) -> None:
        place = Layer(self.origin, {}, self.lines).place(key)
        self.problems.append(Invalid(f"{place}: {what}", hint, code="invalid_policy"))

    def walk(self, key: str, value: object) -> None:
        """Go down tables; read what is a value; refuse what is neither."""
        if key in schema.TABLES:
            if not isinstance(value, Mapping):
                known = next(
                    (row for row in schema.ROWS if row.startswith(f"{key}.")), f"{key}.code"
                )
                hint = f"Write {known} = …, or a table [{key}]."
                self.refuse(key, f"{key}: not a table: {shown(value)}", hint)
                return
            for name, inner in value.items():
                self.walk(f"{key}.{name}", inner)
        elif key in self.values:
            self.refuse(key, f"{_written(key)} is set twice", "Keep one of them.")
        elif key == "budget":
            self.values[key] = self.budgets(value)
        elif key.startswith("caps.") and not self.is_cap(key):
            return
        elif (kind := schema.kind_of(key)) is None:
            hint = schema.nearest(key, isinstance(value, Mapping))
            self.refuse(key, f"unknown key {_written(key)}", hint)
        else:
            self.values[key] = self.value(key, value, kind)

    def is_cap(self, key: str) -> bool:
        """A cap is on `all`, or on a name after what it names."""
        scope = key[len("caps.") :]
        try:
            schema.CAP_NAMES.read(scope)
        except Invalid as error:
            from difflib import get_close_matches

            kind, _, name = scope.partition(":")
            near = get_close_matches(kind, ("all", *schema.CAP_NAMES.kinds), n=1)
            cap = "caps.all" if near == ["all"] else f'caps."{"".join(near)}:{name or "NAME"}"'
            hint = f"Did you mean {cap}?" if near and (near != [kind] or not name) else error.hint
            self.refuse(key, f"unknown key {_written(key)}: {error.message}", hint)
            return False
        return True

    def value(self, key: str, value: object, kind: Kind) -> object:
        """The typed value of one key; None when it is removed or refused."""
        optional = schema.may_be_absent(key)
        if optional and value in (None, schema.NONE):
            return None
        try:
            return kind.read(value)
        except Invalid as error:
            hint = f'{error.hint} "none" removes it.' if optional else error.hint
            self.refuse(key, f"{_written(key)}: {error.message}", hint)
            return None

    def budgets(self, value: object) -> tuple[Budget, ...]:
        """All budgets; they replace those of the layer below."""
        if value is None or value == schema.NONE:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(b, Mapping) for b in value):
            self.refuse(
                "budget",
                f"budget: not a list of tables: {shown(value)}",
                'Write [[budget]] and under it scope = "all", tokens = 1000000.',
            )
            return ()
        budgets = [self.budget(f"budget[{at}]", table) for at, table in enumerate(value)]
        return tuple(budget for budget in budgets if budget is not None)

    def budget(self, key: str, table: Mapping[str, object]) -> Budget | None:
        """One budget: a scope, and either tokens or usd."""
        before = len(self.problems)
        values: Values = {"window": ""}  # the policy's, unless it has its own
        for name, value in table.items():
            if name not in schema.BUDGET_ROWS:
                hint = did_you_mean(name, schema.BUDGET_ROWS)
                self.refuse(f"{key}.{name}", f"unknown key {key}.{name}", hint)
            else:
                values[name] = self.value(f"{key}.{name}", value, schema.BUDGET_ROWS[name])
        if "scope" not in table:
            self.refuse(key, f"{key} has no scope", 'Add scope = "all".')
        if ("tokens" in table) == ("usd" in table):
            has = "both tokens and usd" if "tokens" in table else "neither tokens nor usd"
            self.refuse(key, f"{key} has {has}", "Set one of them.")
        return None if len(self.problems) > before else Budget(**values)


def project_budgets(rows: object, project: str, window: Micros) -> tuple[Budget, ...]:
    """A project's own budgets: tables as in the policy, whose scope is the project."""
    scope = f"project:{project}"
    if not isinstance(rows, list | tuple):
        raise wrong("a list of tables", rows, 'Write it as [{"tokens": 50000, "window": "24h"}].')
    for row in rows:
        if not isinstance(row, Mapping) or row.get("scope", scope) != scope:
            hint = 'Write it as {"tokens": 50000, "window": "24h"}.'
            raise wrong("a budget of this project", row, hint)
    reading = _Reading("", {})
    budgets = reading.budgets([{**row, "scope": scope} for row in rows])
    for problem in reading.problems:
        raise Invalid(problem.message.removeprefix(": "), problem.hint)
    return with_windows(budgets, window)


def with_windows(budgets: Iterable[Budget], window: Micros) -> tuple[Budget, ...]:
    """Budgets that say none have this window."""
    return tuple(b if b.window else replace(b, window=show_duration(window)) for b in budgets)


def read_layer(
    mapping: Mapping[str, object], origin: str, lines: Mapping[str, int] | None = None
) -> tuple[Layer, list[Invalid]]:
    """The values of a table without its `preset`, and every problem with them."""
    reading = _Reading(origin, lines or {})
    for written, value in mapping.items():
        key = schema.split_key(str(written))
        if key != "preset":
            reading.walk(key, value)
    return Layer(origin, reading.values, reading.lines), reading.problems


def override_layer(overrides: Mapping[str, object], origin: str = "override") -> Layer:
    """Overrides as nested tables or dotted keys; a preset is not one of them."""
    if "preset" in overrides:
        raise Invalid(
            f"{origin}: preset: overrides change keys, not the preset",
            "Start from that preset instead.",
            code="invalid_policy",
        )
    return _checked(*read_layer(overrides, origin))


def mapping_layers(
    mapping: Mapping[str, object], origin: str, lines: Mapping[str, int] | None = None
) -> list[Layer]:
    """The preset that a table names, and what the table changes."""
    name = mapping.get("preset", DEFAULT_PRESET)
    place = Layer(origin, {}, lines or {}).place("preset")
    base = preset_layer(name, place)
    return [base, _checked(*read_layer(mapping, origin, lines))]


def file_layers(path: Path) -> list[Layer]:
    """The layers of a policy file; without a file the default preset alone."""
    text = read_text(path)
    if text is None:
        return [preset_layer(DEFAULT_PRESET)]
    return mapping_layers(parse_toml(text, str(path)), str(path), key_lines(text))


def problems(path: Path) -> list[Invalid]:
    """Everything that is wrong with a policy file, in its order; empty when it can be used."""
    try:
        text = read_text(path)
        if text is None:
            return [Invalid(f"{path}: there is no such file", "Give the path of a policy file.")]
        mapping, lines = parse_toml(text, str(path)), key_lines(text)
        layer, refused = read_layer(mapping, str(path), lines)
        place = layer.place("preset")
        layers = [preset_layer(mapping.get("preset", DEFAULT_PRESET), place), layer]
        if not refused:
            overlay({}, layers)
    except Invalid as error:
        return [error]
    return refused


def read_text(path: Path) -> str | None:
    """The text of a file; None when there is no file. One that cannot be read is an error."""
    try:
        return read_file(path, FILE_BYTES_MAX).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        hint = "Make it a readable TOML file, or remove it to use the preset balanced."
        raise Invalid(f"{path}: cannot be read: {why}", hint, code="invalid_policy") from error


def parse_toml(text: str, origin: str) -> dict[str, object]:
    """TOML with exact decimals; a mistake is named with its line."""
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        at = re.search(_AT, str(error))
        line = (at[1] or str(text.count("\n") + 1)) if at else ""
        place = f"{origin}:{line}" if line else origin
        what = re.sub(_AT, "", str(error))
        hint = 'Settings are lines such as caps.all = 4; text needs quotes: lease.ttl = "5m".'
        raise Invalid(f"{place}: not TOML: {what}", hint, code="invalid_policy") from error


def key_lines(text: str) -> dict[str, int]:
    """The line of every table and key that begins one; for error messages, so near enough."""
    lines: dict[str, int] = {}
    table, arrays = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        parts = _LINE.match(line)
        if not parts:
            continue
        if parts[2]:
            table = schema.split_key(parts[2])
            if parts[1] == "[[":
                table, arrays = f"{table}[{arrays}]", arrays + 1
            lines.setdefault(table, number)
        else:
            key = schema.split_key(parts[3])
            lines.setdefault(f"{table}.{key}" if table else key, number)
    return lines


def find_line(lines: Mapping[str, int], key: str) -> int | None:
    """The line of a key, else that of the nearest table around it."""
    while key:
        inside = (line for known, line in lines.items() if known.startswith((f"{key}.", f"{key}[")))
        line = lines.get(key) or next(inside, None)
        if line:
            return line
        key = key.rpartition(".")[0] or key.rpartition("[")[0]
    return None


@cache
def preset_names() -> tuple[str, ...]:
    """The names of the shipped policies."""
    return tuple(sorted(page.stem for page in PRESETS.glob("*.toml")))


def presets() -> dict[str, str]:
    """The shipped policies, each with the first line of its file."""
    return {name: _preset_text(name).splitlines()[0].lstrip("# ") for name in preset_names()}


def preset_layer(name: object, place: str = "") -> Layer:
    """A shipped policy as the lowest layer; `place` names who asked for it."""
    if isinstance(name, str) and name in preset_names():
        return _preset(name)
    where = f"{place}: " if place else ""
    hint = did_you_mean(str(name), preset_names())
    raise Invalid(f"{where}unknown preset {shown(name)}", hint, code="invalid_policy")


@cache
def _preset(name: str) -> Layer:
    text, origin = _preset_text(name), f"preset {name}"
    layer = _checked(*read_layer(parse_toml(text, origin), origin, key_lines(text)))
    return Layer(origin, layer.values, preset=name)


def _preset_text(name: str) -> str:
    return (PRESETS / f"{name}.toml").read_text("utf-8")


def overlay(below: Mapping[str, object], layers: Sequence[Layer]) -> Values:
    """The values of `below` with the layers on top, the last deciding; the whole is checked."""
    values: Values = dict(below)
    for layer in layers:
        values.update(layer.values)
    values = {key: value for key, value in values.items() if value is not None}
    _check_backpressure(values, layers)
    return values


def _check_backpressure(values: Values, layers: Iterable[Layer]) -> None:
    """The hard limit is never below the soft one."""
    soft, hard = schema.backpressure_limits(
        values.get("backpressure.soft"), values.get("backpressure.hard"), values.get("caps.all")
    )
    if soft is None or hard is None or hard >= soft:
        return
    keys = ("backpressure.hard", "backpressure.soft", "caps.all")
    said = [
        layer.place(key) for layer in reversed(list(layers)) for key in keys if key in layer.values
    ]
    place = said[0] if said else "policy"
    raise Invalid(
        f"{place}: backpressure.hard = {hard} is below backpressure.soft = {soft}",
        "Raise backpressure.hard or lower backpressure.soft.",
        code="invalid_policy",
    )


def _checked(layer: Layer, refused: list[Invalid]) -> Layer:
    """The layer, when nothing is wrong with it; else the first problem, and how many more."""
    if not refused:
        return layer
    first = refused[0]
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    raise Invalid(first.message + more, first.hint, code=first.error_code)


def _written(key: str) -> str:
    return key if key.startswith("budget[") else schema.show_key(key)
