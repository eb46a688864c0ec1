"""SQL that is refused before DuckDB reads it. In: a text that somebody wrote. Out: why it is none, or None.

DuckDB's parser takes memory and time by the square of the brackets that are open and of the signs in a row (`- - 1`),
its binder time by the square of the names of one path (`a.b.c`). Neither heeds the limit of memory or an interrupt, and
its own limit of depth is asked behind them: 8 kB of brackets take 2.5 GB.
"""

from __future__ import annotations

# Brackets within each other, signs in a row, names of one path. What people write has ten.
MOST_NESTED = 100
_OPENING, _CLOSING, _APART = b"([{", b")]}", b",;"
_NESTING = _OPENING + b".!#$%&*+-/:<=>?@^`|~\\"


def why_refused(sql: str) -> str | None:
    """A sentence for who wrote it; None for what DuckDB may read. It takes time by the length of the text."""
    try:
        text = sql.encode()
    except UnicodeEncodeError:
        return "the SQL is no text in UTF-8"
    if len(text) - len(text.translate(None, _NESTING)) < MOST_NESTED:  # most statements are not looked at closely
        return None
    for what, number in _most(sql, text).items():
        if number > MOST_NESTED:
            return f"the SQL has {number:,} {what}; at most {MOST_NESTED} are read"
    return None


def _most(sql: str, text: bytes) -> dict[str, int]:
    """The most brackets that are open at once, signs in a row, and names of one path. DuckDB's own tokens tell where
    quotes and comments end; `text` is where they point to."""
    import duckdb

    comment, operator = duckdb.token_type.comment, duckdb.token_type.operator
    brackets = signs = dots = most_brackets = most_signs = most_dots = 0
    is_behind_dot = False
    for at, kind in duckdb.tokenize(sql):
        if kind == comment:
            continue
        sign = text[at]
        is_bracket = sign in _OPENING or sign in _CLOSING
        brackets = max(brackets + (sign in _OPENING) - (sign in _CLOSING), 0)
        signs = signs + 1 if kind == operator and not is_bracket and sign not in _APART else 0
        is_dot = sign == ord(".") and not text[at + 1 : at + 2].isdigit()  # .5 is a number
        dots = dots + is_dot if is_dot or is_behind_dot else 0
        is_behind_dot = is_dot
        most_brackets, most_signs, most_dots = (
            max(most_brackets, brackets),
            max(most_signs, signs),
            max(most_dots, dots),
        )
    return {
        "brackets within each other": most_brackets,
        "signs in a row": most_signs,
        "names joined by dots": most_dots + 1,
    }
