"""What went wrong with HDFS, as errors of the operating system whose text may be shown.

In: an error of the client. Out: an OSError. The client's own text has a stack of Java behind its first line.
"""

from __future__ import annotations

import errno
import re

WHO = "HADOOP_USER_NAME says who asks, or a Kerberos ticket (kinit, KRB5CCNAME)"
_ANSWER = re.compile(r'RPCError\("(?:[\w$]+\.)*([\w$]+)"')
_DENIED = re.compile(r"user=([^,\s]{1,80}), access=(\w+)")
# What the client or the name node says, and what that means to whoever wrote the address.
_SIGNS = (
    ("nonamenodehostsfound", errno.EINVAL,
     "no name node is known: write hdfs://HOST:PORT/PATH, or let HADOOP_CONF_DIR name the folder with the "
     "hdfs-site.xml that has this name service"),
    ("nofs.defaultfs", errno.EINVAL,
     "hdfs:/// means fs.defaultFS of core-site.xml, which is not set: write hdfs://HOST:PORT/PATH, or let "
     "HADOOP_CONF_DIR name the folder with core-site.xml"),
    ("invalidpath", errno.EINVAL, "this is no address of a file that can be read"),
    ("simpleauthentication", errno.EACCES, f"the name node asks for Kerberos: {WHO}"),
    ("gssapi", errno.EACCES, f"Kerberos does not let it in: {WHO}"),
    ("sasl", errno.EACCES, f"Kerberos does not let it in: {WHO}"),
    ("(isnotadirectory)", errno.ENOTDIR, "a file is where a folder would have to be"),
    ("safemode", errno.EROFS, "the name node is in safe mode, in which nothing is written"),
    ("couldonlybewritten", errno.EIO, "no data node takes its blocks"),
    ("failedtocompletefile", errno.EIO, "no data node told the name node of its last block in time"),
    ("blocksnotfound", errno.EIO, "no data node has all of its blocks"),
    ("datatransfererror", errno.EIO, "no data node gives its blocks"),
    ("connectionrefused", errno.EIO, "the store cannot be reached: connection refused"),
    ("lookupaddress", errno.EIO, "the store cannot be reached: its name cannot be resolved"),
    ("timedout", errno.EIO, "the store cannot be reached: no answer in time"),
)  # fmt: skip


def os_error(error: Exception, name: str) -> OSError:
    """The error that reading a file would have raised."""
    text = str(error)
    found = _ANSWER.search(text)
    answer = "" if found is None else found[1]
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "no such file", name)
    if answer == "AccessControlException" and (who := _DENIED.search(text)) is not None:
        return PermissionError(errno.EACCES, f"permission denied ({who[2]} for user {who[1]}); {WHO}", name)
    words = text.replace(" ", "").lower()
    for sign, number, told in _SIGNS:
        if sign in words:
            return OSError(number, told, name)
    why = f"the name node answers {answer}" if answer else "the store cannot be read or written"
    return OSError(errno.EIO, why, name)
