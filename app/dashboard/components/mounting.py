"""Registration of components. In: a component's name. Out: the function that mounts it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

_FOLDER = Path(__file__).parent


@cache
def component(name: str) -> ComponentRenderer:
    """The component whose script and style are NAME.js and NAME.css; it draws into an element of the class NAME."""
    from streamlit.components.v2 import component as register

    script, style = ((_FOLDER / f"{name}{suffix}").read_text("utf-8") for suffix in (".js", ".css"))
    return register(f"wirewitness_{name}", html=f'<div class="{name}"></div>', css=style, js=script)
