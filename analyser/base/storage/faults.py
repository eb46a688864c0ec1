"""What went wrong with a store, as errors of the operating system whose text may be shown.

In: an error of the library. Out: an OSError. The library's own text has addresses with signatures and tokens in them,
so only the answer's status and the store's code for it are taken from it.
"""

from __future__ import annotations

import errno
import re

_STATUS = re.compile(r"status code: (\d{3}[\w ]*)")
_CODE = re.compile(r"<Code>(\w{1,80})</Code>")

# Where the credentials of each store come from.
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or GOOGLE_SKIP_SIGNATURE=true for a public bucket",
    "abfs": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
}


CHANGED = "it was replaced since it was first read"


class ObjectChanged(OSError):
    """Another object has its name now."""


class NameTaken(FileExistsError):
    """Another object has the name already, or in place of the one that was to be replaced."""

    @classmethod
    def of(cls, name: object) -> NameTaken:
        """For the object of this name."""
        return cls(errno.EEXIST, "another object has this name", str(name))


def os_error(error: Exception, name: str, scheme: str) -> OSError:
    """The error that reading a file would have raised; one that has its errno is such already. The library raises
    errors of Python, too, with its own text alone."""
    if isinstance(error, OSError) and error.errno is not None:
        return error
    from obstore import exceptions

    text = str(error)
    told = " ".join(found[1].strip() for found in (_STATUS.search(text), _CODE.search(text)) if found)
    if isinstance(error, exceptions.PreconditionError):
        return ObjectChanged(errno.ESTALE, CHANGED, name)
    if isinstance(error, FileNotFoundError) or told.startswith("404"):
        missing = "bucket" if "NoSuchBucket" in told else "object or bucket"
        return FileNotFoundError(errno.ENOENT, f"no such {missing}", name)
    if isinstance(error, ValueError):
        return OSError(errno.EINVAL, "this is no address of an object that can be read", name)
    if told.startswith(("401", "403")):
        return PermissionError(
            errno.EACCES, f"permission denied ({told}); credentials come from {_CREDENTIALS[scheme]}", name
        )
    # Addresses and names of settings may hold any of the words that tell what went wrong.
    lowered = _NO_SIGNS.sub("", text).lower()
    if "credential" in lowered or "169.254.169.254" in text or "metadata.google" in text:
        return PermissionError(errno.EACCES, f"no credentials were found: set {_CREDENTIALS[scheme]}", name)
    why = next((words for sign, words in _SIGNS.items() if sign in lowered), "")
    if told:
        return OSError(errno.EIO, f"the store answers {told}{why and f'; {why}'}", name)
    return OSError(errno.EIO, f"the store cannot be reached{why and f': {why}'}", name)


_NO_SIGNS = re.compile(r"https?://\S+|retry_timeout")
_SIGNS = {
    "connection refused": "connection refused",
    "dns error": "its name cannot be resolved",
    "timed out": "no answer in time",
    "timedout": "no answer in time",
    "timeout": "no answer in time",
    "invalidcontenttype": "no TLS is spoken there; an endpoint in clear text begins with http://",
    "certificate": "its certificate is not trusted",
    "region": "is it in this region? AWS_REGION says which",
}
