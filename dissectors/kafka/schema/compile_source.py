"""The text of a decoder: the fields of one message version in, Python source and the struct functions it uses out.

While a function is written, `self.ahead` is how far the reading position is beyond the variable `p`, and `self.group`
holds fixed-size fields that wait for the next struct call. Both are settled before the code branches or loops.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wirewitness.dissectors.kafka.schema.compile_plan import FORMATS, Planned
from wirewitness.dissectors.kafka.schema.definitions import MASKED

# From this many elements on, one iter_unpack with a comprehension beats a loop of unpack_from (measured, CPython 3.11).
MANY = 4


class FunctionSource:
    """Writes one decoder. Use `function` once, then `constants`."""

    def __init__(self, flexible: bool, errors: str) -> None:
        self.flexible = flexible
        self.decode = f".decode({errors})"
        self.constants: dict[str, Any] = {}
        self.lines: list[str] = []
        self.indent = 0
        self.variables = 0
        self.ahead = 0
        self.group: list[tuple[str, str]] = []

    def function(self, fields: Sequence[Planned]) -> str:
        """The whole `def decode(buf, pos, end)`."""
        self.line("def decode(buf, pos, end):")
        with self.block("    try:"):
            self.line("if end > len(buf):")
            self.line("    raise DecodeError('the message is longer than the buffer')")
            self.line("p = pos")
            value = self.struct(fields)
            self.settle()
            self.line("if p > end:")
            self.line("    raise DecodeError('the message ends inside a field')")
            self.line(f"return {value}, p")
        # Reads may have gone on into what follows the message: what is wrong is told from its own bytes alone.
        self.line("    except DecodeError:")
        self.line("        if end < len(buf):")
        self.line("            decode(buf[pos:end], 0, end - pos)")
        self.line("        raise")
        self.line("    except UnicodeDecodeError:")
        self.line("        return lenient(buf, pos, end)")
        self.line("    except (IndexError, StructError):")
        self.line("        if end < len(buf):")
        self.line("            decode(buf[pos:end], 0, end - pos)")
        self.line("        raise DecodeError('the message ends inside a field') from None")
        return "\n".join(self.lines) + "\n"

    # text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        deeper = 1 + (len(head) - len(head.lstrip())) // 4
        self.indent += deeper
        yield
        self.indent -= deeper

    def name(self) -> str:
        self.variables += 1
        return f"v{self.variables}"

    def constant(self, format_: str, kind: str) -> str:
        name = f"{kind}_" + format_.replace("?", "o")
        self.constants[name] = getattr(struct.Struct(">" + format_), kind)
        return name

    # position

    def here(self, extra: int = 0) -> str:
        """The reading position as an expression."""
        shift = self.ahead + extra
        return f"p + {shift}" if shift > 0 else f"p - {-shift}" if shift else "p"

    def left(self) -> str:
        """The number of bytes behind the reading position as an expression."""
        return f"end - p - {self.ahead}" if self.ahead else "end - p"

    def fixed(self, format_: str, keep: bool = True) -> str:
        """Add a fixed-size field to the group; the variable that will hold it, "" if it is only stepped over."""
        name = self.name() if keep else ""
        self.group.append((format_, name))
        return name

    def flush(self) -> None:
        """Read the waiting group with one struct call."""
        size = struct.calcsize(">" + "".join(format_ for format_, _ in self.group))
        group = list(self.group)
        while group and not group[-1][1]:
            group.pop()
        self.group = []
        names = [name for _, name in group if name]
        if len(group) == 1 and group[0][0] == "B":
            self.line(f"{names[0]} = buf[{self.here()}]")
        elif names:
            format_ = "".join(f if name else f"{struct.calcsize('>' + f)}x" for f, name in group)
            targets = ", ".join(names) + ("," if len(names) == 1 else "")
            self.line(f"{targets} = {self.constant(format_, 'unpack_from')}(buf, {self.here()})")
        self.ahead += size

    def settle(self) -> None:
        """Bring `p` to the reading position."""
        self.flush()
        if self.ahead:
            self.line(f"p += {self.ahead}")
        self.ahead = 0

    # fields

    def struct(self, fields: Sequence[Planned]) -> str:
        """Read the fields of a struct; the dict display that makes its value. Leaves group and `ahead` open."""
        items = {one.name: self.field(one) for one in fields if one.tag is None}
        tagged = [one for one in fields if one.tag is not None and one.keep]
        if self.flexible:
            items |= self.tags(tagged)
        return "{" + ", ".join(f"{one.name!r}: {items[one.name]}" for one in fields if one.keep) + "}"

    def field(self, field: Planned) -> str:
        """Read one field; the expression of its value, of no use if the field is not kept."""
        if field.array:
            return self.array(field)
        if field.type in FORMATS:
            return self.fixed(field.format, field.keep)
        if field.type == "struct":
            return self.nested(field)
        return self.sized(field, field.nullable)

    def nested(self, field: Planned) -> str:
        if not field.nullable:
            return self.struct(field.fields)
        mark, value = self.fixed("b"), self.name()
        self.settle()
        if field.keep:
            self.line(f"{value} = None")
        with self.block(f"if {mark} >= 0:"):
            display = self.struct(field.fields)
            self.settle()
            self.line(f"{value} = {display}" if field.keep else "pass")
        return value

    def length(self, format_: str) -> str:
        """Read the length or count in front of a value; in flexible versions it is one too high, and 0 is null."""
        number = self.fixed("B" if self.flexible else format_)
        self.flush()
        if self.flexible:
            with self.block(f"if {number} > 127:"):
                self.line(f"{number}, p = long(buf, {self.here()}, {number})")
                self.line(f"if {number} > end - p + 1:")
                self.line("    raise DecodeError('a length goes past the end of the message')")
                if self.ahead:
                    self.line(f"p -= {self.ahead}")
        elif format_ == "i":
            self.line(f"if {number} > {self.left()}:")
            self.line("    raise DecodeError('a length goes past the end of the message')")
        return number

    def sized(self, field: Planned, nullable: bool) -> str:
        """Read a string, bytes or records value."""
        number, value = self.length("h" if field.type == "string" else "i"), self.name()
        if nullable:
            with self.block(f"if {number}:" if self.flexible else f"if {number} >= 0:"):
                self.cut(field, number, value)
            with self.block("else:"):
                if field.keep:
                    self.line(f"{value} = None")
                self.line(f"p += {self.ahead}" if self.ahead else "pass")
        else:
            self.refuse_null(field, number)
            self.cut(field, number, value)
        self.ahead = 0
        return value

    def refuse_null(self, field: Planned, number: str) -> None:
        self.line(f"if not {number}:" if self.flexible else f"if {number} < 0:")
        self.line(f"    raise null({field.name!r})")

    def cut(self, field: Planned, number: str, value: str) -> None:
        start, stop = self.here(), self.here(-1 if self.flexible else 0) + f" + {number}"
        if not field.keep:
            self.line(f"p = {stop}")
        elif field.secret:
            self.line(f"{value} = {MASKED[field.type]!r}")
            self.line(f"p = {stop}")
        elif field.type == "records":
            self.line(f"{value} = ({start}, {number}{' - 1' if self.flexible else ''})")
            self.line(f"p = {stop}")
        else:
            self.line(f"e = {stop}")
            self.line(f"{value} = buf[{start}:e]" + (self.decode if field.type == "string" else ""))
            self.line("p = e")

    # arrays

    def array(self, field: Planned) -> str:
        count, value = self.length("i"), self.name()
        self.settle()
        if field.nullable:
            if field.keep:
                self.line(f"{value} = None")
            with self.block(f"if {count}:" if self.flexible else f"if {count} >= 0:"):
                self.elements(field, count, value)
        else:
            self.refuse_null(field, count)
            self.elements(field, count, value)
        return value

    def elements(self, field: Planned, count: str, value: str) -> None:
        if self.flexible:
            self.line(f"{count} -= 1")
        # An element without bytes would make a small message a long loop; none is taken for less than one byte.
        size = max(1, field.size)
        self.line(f"if {count} * {size} > end - p:" if size > 1 else f"if {count} > end - p:")
        self.line(f"    raise DecodeError({f'{field.name} has more elements than bytes left'!r})")
        if field.type in FORMATS:
            self.numbers(field, count, value)
        elif field.type == "struct" and field.fixed and field.size:
            self.fixed_structs(field, count, value)
        else:
            self.loop(field, count, value)

    def numbers(self, field: Planned, count: str, value: str) -> None:
        if field.keep and field.type == "uuid":
            rows = f"{self.constant(field.format, 'iter_unpack')}(buf[p:p + {count} * {field.size}])"
            self.line(f"{value} = [x for x, in {rows}]")
        elif field.keep:
            one = f"{self.constant(field.format, 'unpack_from')}(buf, p)"
            many = f"unpack_from(f'>{{{count}}}{field.format}', buf, p)"
            self.line(f"{value} = list({one} if {count} == 1 else {many})")
        self.line(f"p += {count} * {field.size}")

    def fixed_structs(self, field: Planned, count: str, value: str) -> None:
        """Many elements of one size in one go, unless one of them has tagged fields; few of them one by one."""
        size = field.size
        untagged = f" and not buf[p + {size - 1}:q:{size}].strip(b'\\0')" if self.flexible else ""
        self.line(f"q = p + {count} * {size}")
        with self.block(f"if {count} >= {MANY}{untagged}:"):
            if field.keep:
                self.line(f"{value} = {self.comprehension(field)}")
            self.line("p = q")
        with self.block("else:"):
            self.loop(field, count, value)

    def comprehension(self, field: Planned) -> str:
        kept = [one for one in field.fields if one.keep]
        names = {one.name: self.name() for one in kept if one.tag is None}
        format_ = "".join(one.format if one.keep else f"{one.size}x" for one in field.fields if one.tag is None) + (
            "x" if self.flexible else ""
        )
        display = ", ".join(f"{one.name!r}: {names.get(one.name)}" for one in kept)
        targets = ", ".join(names.values()) + ("," if len(names) == 1 else "")
        return f"[{{{display}}} for {targets or '_'} in {self.constant(format_, 'iter_unpack')}(buf[p:q])]"

    def loop(self, field: Planned, count: str, value: str) -> None:
        if field.keep:
            self.line(f"{value} = []")
        with self.block(f"for _ in range({count}):"):
            one = self.struct(field.fields) if field.type == "struct" else self.sized(field, False)
            self.settle()
            self.line(f"{value}.append({one})" if field.keep else "pass")

    # tagged fields

    def tags(self, known: list[Planned]) -> dict[str, str]:
        """Read the tagged fields at the end of a struct; the variables of the known ones by name."""
        count = self.fixed("B")
        self.flush()
        ahead = self.ahead
        if not known:
            back = f" - {ahead}" if ahead else ""
            self.line(f"if {count}:")
            self.line(f"    p = skip_tags(buf, {self.here()}, {count}, end){back}")
            return {}
        names = {one.name: self.name() for one in known}
        self.line(" = ".join(names.values()) + " = None")
        with self.block(f"if {count}:"):
            self.settle()
            self.line(f"if {count} > 127:")
            self.line(f"    {count}, p = long(buf, p, {count})")
            self.tag_loop(count, known, names)
            if ahead:
                self.line(f"p -= {ahead}")
        self.ahead = ahead
        return names

    def tag_loop(self, count: str, known: list[Planned], names: dict[str, str]) -> None:
        tag, stop = self.name(), self.name()
        with self.block(f"for _ in range({count}):"):
            self.line(f"{tag}, p, {stop} = tag_head(buf, p, end)")
            for one in known:
                with self.block(f"{'if' if one is known[0] else 'elif'} {tag} == {one.tag}:"):
                    value = self.field(one)
                    self.settle()
                    self.line(f"{names[one.name]} = {value}")
                    self.line(f"if p != {stop}:")
                    self.line(f"    raise DecodeError({f'{one.name} does not fill its tagged field'!r})")
            with self.block("else:"):
                self.line(f"p = {stop}")
