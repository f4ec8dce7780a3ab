"""YAML in which no key is given twice; imported where YAML is read, because that takes long."""

from __future__ import annotations

from collections.abc import Hashable

import yaml


class OnceLoader(yaml.SafeLoader):
    """A safe loader that refuses a key that is given twice, of which the last one would count."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        """As usual, each key once."""
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise yaml.MarkedYAMLError(problem=f"{twice!r} appears twice")
        return super().construct_mapping(node, deep)
