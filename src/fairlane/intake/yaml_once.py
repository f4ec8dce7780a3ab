"""YAML in which no key is given twice; imported where YAML is read, because that takes long."""

from __future__ import annotations

from collections.abc import Hashable

import yaml

#: A document has no more values than this, where every alias stands for what it names.
VALUES_MAX = 1_000_000


class OnceLoader(yaml.SafeLoader):
    """A safe loader that refuses a key that is given twice, of which the last one would count.

    A few lines of aliases can stand for more than any machine holds: that is refused too.
    """

    def compose_document(self) -> yaml.Node | None:
        """As usual, if it is not too large."""
        node: yaml.Node | None = super().compose_document()
        if node is not None and _size(node, {}) > VALUES_MAX:
            raise yaml.MarkedYAMLError(problem="its aliases make it too large")
        return node

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        """As usual, each key once."""
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise yaml.MarkedYAMLError(problem=f"{twice!r} appears twice")
        return super().construct_mapping(node, deep)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a value holds, itself among them; each node is looked at once."""
    if id(node) not in known:
        known[id(node)] = 1  # of one that holds itself
        if isinstance(node, yaml.MappingNode):
            known[id(node)] += sum(_size(part, known) for pair in node.value for part in pair)
        elif isinstance(node, yaml.SequenceNode):
            known[id(node)] += sum(_size(part, known) for part in node.value)
    return known[id(node)]


def problem_of(error: BaseException, lines_above: int = 0) -> str:
    """What is wrong and where, in one line; nothing of what the file says, which may be secret."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None)
    if problem is None:
        problem = "it is too deep" if isinstance(error, RecursionError) else str(error)
    return f"{problem}, line {mark.line + 1 + lines_above}" if mark else str(problem)
