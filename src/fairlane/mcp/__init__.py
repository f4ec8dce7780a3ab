"""MCP: the operations as tools, so that agents queue work for agents. Needs the extra `mcp`.

`tools` makes them from the table of operations; `server` answers over stdio and over HTTP.
"""
