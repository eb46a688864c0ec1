"""What a process is called. In: what /proc says of it. Out: its name without arguments, which may hold credentials.

Of Java, where all processes have one name, the class or the jar file that was started comes along: `java
kafka.Kafka`. Source: the manual page of java for options that take a value of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_COMM_BYTES = 15  # what the kernel keeps of a name
_JAVA = "java"
_WITH_VALUE = frozenset(
    ("-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
     "--limit-modules", "--add-reads", "--add-exports", "--add-opens", "--patch-module", "--enable-native-access",
     "--source", "-d", "--describe-module")
)  # fmt: skip
# A name with a package, and not too long to be one: what else stands there stays out.
_CLASS = re.compile(r"[A-Za-z_$][\w$]{0,63}(?:\.[A-Za-z_$][\w$]{0,63}){1,15}")
_JAR = re.compile(r"[\w][\w.+-]{0,100}\.jar")


def command(comm: str, exe: str | None, arguments: Sequence[str]) -> str | None:
    """The name that people know: the kernel's, unless the program gave its main thread another one."""
    program = os.path.basename(exe.removesuffix(" (deleted)")) if exe else ""
    if _JAVA in (program, comm):
        return " ".join(filter(None, (_JAVA, _started(arguments))))
    known = {name.encode()[:_COMM_BYTES] for name in (program, *(os.path.basename(one) for one in arguments[:2]))}
    if program and comm.encode() not in known:
        return program
    if program and comm != program and program.encode()[:_COMM_BYTES] == comm.encode():
        return program  # the kernel's name is cut
    return comm or None


def _started(arguments: Sequence[str]) -> str | None:
    """The class or jar file among the arguments of java."""
    left = iter(arguments[1:])
    for one in left:
        if one in ("-jar", "-m", "--module"):
            name = os.path.basename(next(left, ""))
            wanted = _JAR if one == "-jar" else _CLASS
            return name if wanted.fullmatch(name) else None
        if one in _WITH_VALUE:
            next(left, None)
        elif not one.startswith(("-", "@")):
            return one if _CLASS.fullmatch(one) else None
    return None
