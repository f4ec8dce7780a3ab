"""Makes a database from the statements beside this file: `python3 make.py agent-queue.db`."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

statements = Path(__file__).with_name("agent-queue.sql").read_text(encoding="utf-8")
with closing(sqlite3.connect(sys.argv[1])) as connection:
    connection.executescript(statements)
