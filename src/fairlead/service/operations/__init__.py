"""Operations: one function each, asked by every interface, with plain values as JSON has them.

`calls` holds the functions, `table` says how each is called over HTTP and MCP, `checking` looks at
what came from outside, `documents` describes the answers.
"""
