"""The line by which the example enters the table of contents."""

from __future__ import annotations

from wirewitness.dissectors.core.inspect import Asked, Inspected
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Decoder, Dissector
from wirewitness.dissectors.example.framing import framer, probe


def _decoder(limits: Limits, _options: DecodeOptions) -> Decoder:
    from wirewitness.dissectors.example.decoder import ExampleDecoder

    return ExampleDecoder(limits)


def _inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    from wirewitness.dissectors.example.inspect import inspect

    return inspect(data, asked, options)


def _may_hide(asked: Asked) -> bool:
    from wirewitness.dissectors.example.inspect import may_hide

    return may_hide(asked)


EXAMPLE = Dissector(
    name="example",
    title="Example",
    colour="#b59a00",
    letters="EXA",
    ports=(),
    probe=probe,
    framer=framer,
    decoder=_decoder,
    rows={},
    error_names={},
    inspect=_inspect,
    may_hide=_may_hide,
)
