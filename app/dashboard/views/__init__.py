"""Pages of the dashboard, a module each with `show(view)`; how to write one stands in `app/dashboard/__init__.py`."""
