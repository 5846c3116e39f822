"""The least that a server of answers does: one FastAPI route that checks a token and commits one row to SQLite.

`benchmarks.server_floor` runs it in the Argilla server's environment, with the versions of FastAPI, uvicorn and SQLite
that our server has, and SQLite set as `plumbline_argilla.connections` sets it.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from typing import Annotated, Any

import uvicorn
from fastapi import Body, FastAPI, Header, HTTPException


def assembled(database: str, token: str) -> FastAPI:
    """The application; `database` is a file that it makes, `token` the only one that it knows."""
    connection = sqlite3.connect(database, check_same_thread=False)
    writing = threading.Lock()  # FastAPI runs a blocking route in threads, and SQLite has one writer
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE users (token TEXT PRIMARY KEY)")
    connection.execute("CREATE TABLE answers (id INTEGER PRIMARY KEY, record TEXT NOT NULL, content TEXT NOT NULL)")
    connection.execute("INSERT INTO users VALUES (?)", (token,))
    connection.commit()
    app = FastAPI()

    def answer(
        record: str, content: Annotated[dict[str, Any], Body()], x_argilla_api_key: Annotated[str, Header()]
    ) -> dict[str, Any]:
        with writing, connection:
            user = connection.execute("SELECT 1 FROM users WHERE token = ?", (x_argilla_api_key,)).fetchone()
            if user is None:
                raise HTTPException(401)
            row = connection.execute("INSERT INTO answers (record, content) VALUES (?, ?)", (record, str(content)))
        return {"id": row.lastrowid, "record_id": record, **content}

    app.post("/api/v1/records/{record}/responses", status_code=201)(answer)
    return app


if __name__ == "__main__":
    _, database_, token_, port = sys.argv
    uvicorn.run(assembled(database_, token_), host="127.0.0.1", port=int(port), log_level="error", access_log=False)
