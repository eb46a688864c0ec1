"""`--where` checked before hours of capture are read: DuckDB binds it against the table's columns without any row."""

from __future__ import annotations

import re

from wirewitness.app.shared.failure import CallerError, LimitError


def check_condition(where: str | None, table: str) -> None:
    """CallerError with DuckDB's sentence and the columns when the condition cannot be a condition of that table."""
    if where is None:
        return
    import duckdb

    from wirewitness.analyser.capture.errors import CaptureError
    from wirewitness.analyser.tables.queries import QueryError, answer
    from wirewitness.analyser.tables.tables import arrow_schema

    with duckdb.connect(":memory:") as con:
        con.register(table, arrow_schema(table).empty_table())
        for setting in ("python_enable_replacements = false", "enable_external_access = false"):
            con.execute(f"SET {setting}")
        try:
            # The line break ends a comment in the condition. Only what is right with and without brackets is one
            # condition: `a) or (b` and `a order by b` are not.
            for condition in (f"({where}\n)", f"{where}\n"):
                answer(con, f'SELECT count(*) FROM "{table}" WHERE {condition}')
        except (QueryError, CaptureError) as error:
            message = str(error)
            if ")" not in where:  # the bracket is not the caller's, who left something out before it
                message = message.replace('at or near ")"', "at its end")
            raise CallerError(*condition_error(message, table)) from None


def query_limit(error: Exception, what: str, rest: str = "not all rows are written") -> LimitError:
    """What to raise where a query needs more than it may take. what: whose rows it asks for. rest: what comes of it."""
    from wirewitness.analyser.base.faults import told

    return LimitError(told(error, what, rest))


def condition_error(message: str, table: str) -> tuple[str, str]:
    """DuckDB's message without its drawing of the query, and the columns there are."""
    from wirewitness.analyser.tables.queries import renamed_column
    from wirewitness.analyser.tables.tables import readable_table

    sentence = renamed_column(message, table) or " ".join(message.split("\n\n", maxsplit=1)[0].split())
    columns = ", ".join(readable_table(table).column_names())
    return f"--where: {sentence}{_quoting_hint(sentence, table)}", f"columns of {table}: {columns}"


def _quoting_hint(sentence: str, table: str) -> str:
    """A column whose name is a word of SQL, such as `group`, needs double quotes."""
    from wirewitness.analyser.tables.tables import readable_table

    near = re.search(r'at or near "(\w+)"', sentence)
    if near is None or near[1].lower() not in readable_table(table).column_names():
        return ""
    return f'; as a column write it in double quotes: "{near[1].lower()}"'
