"""Messages of a client without those whose id is long, since every answer repeats the id of its question.

In: what the SDK read from standard input. Out: the same, without messages that have no answer of bounded size.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

# Clients count, or take a UUID.
MOST_ID = 200


class ShortIds:
    """A stream of the SDK, which stands in place of the one that it reads. Raises what that one raises."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Any:
        """Of who sent the last message."""
        return self._inner.last_context

    async def receive(self) -> Any:
        """The next message, or what is wrong with the next line."""
        while _is_long(getattr((item := await self._inner.receive()), "message", None)):
            pass
        return item

    async def aclose(self) -> None:
        """No more is read."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while _is_long(getattr((item := await anext(self._inner)), "message", None)):
            pass
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _is_long(message: object) -> bool:
    """Numbers are told by their bits: so many digits take longer to write than to read."""
    name = getattr(message, "id", None)
    return name.bit_length() > 3 * MOST_ID if isinstance(name, int) else len(name or "") > MOST_ID
