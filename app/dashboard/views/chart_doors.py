"""Charts whose marks open the exchanges behind them. In: a view, a chart and what its exchanges have in common."""

from __future__ import annotations

from wirewitness.app.dashboard.charts.bars import Rows
from wirewitness.app.dashboard.charts.theme import AnyChart, pressed_in_chart
from wirewitness.app.dashboard.charts.traffic import TROUBLES, UNKNOWN, exchange_rate, latency_heat, trouble
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.views.exchange_filters import exchange_filters
from wirewitness.reports.base.questions.timelines import domain_ms


def show_rate(view: View, rows: Rows, width_ns: int, describe: str, **common: str | None) -> None:
    """Exchanges a second; a bar opens its exchanges. See `show_trouble`."""
    chart = exchange_rate(rows, width_ns, domain_ms(view.source), opens=True)
    pressed = pressed_in_chart(chart, "rate", describe)
    if pressed is not None:
        named = None if pressed["kind"] == UNKNOWN else pressed["kind"]
        view.go("exchanges", **exchange_filters(**{**common, "protocol_of": named, "between": pressed["bin"]}))


def show_trouble(view: View, rows: Rows, width_ns: int, describe: str, **common: str | None) -> None:
    """Errors and missing answers; a bar opens its exchanges. common: filters of the list that all of them meet.

    describe: constant text for screen readers.
    """
    pressed = pressed_in_chart(trouble(rows, width_ns, domain_ms(view.source)), "trouble", describe)
    if pressed is not None:
        filters = {**common, "status": TROUBLES[pressed["kind"]], "between": pressed["bin"]}
        view.go("exchanges", **exchange_filters(**filters))


def show_heat(view: View, rows: Rows, describe: str, *, noun: str = "exchanges", **common: str | None) -> None:
    """Latency over time; a cell opens its exchanges. See `show_trouble`."""
    chart: AnyChart = latency_heat(rows, domain_ms(view.source), noun)
    pressed = pressed_in_chart(chart, "heat", describe)
    if pressed is not None:
        filters = {**common, "between": pressed["bin"], "took": pressed["took"]}
        view.go("exchanges", **exchange_filters(**filters))
