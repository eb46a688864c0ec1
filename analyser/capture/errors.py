"""The error of the capture layer. In: a caller's mistake. Out: one clear sentence."""


class CaptureError(Exception):
    """An input that cannot be read as a capture; str() is one sentence for the user that names the input."""
