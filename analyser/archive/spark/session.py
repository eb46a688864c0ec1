"""Spark's session: opened quietly, with measured settings, and with our own code on its workers.

In: a master and memory sizes. Out: a SparkSession that ends with its `with` block. Spark's Java is told to be quiet;
what it says all the same lies in a file, and its last line goes into the error when it cannot start.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirewitness.analyser.archive.spark.code_zip import pack_code, source_root
from wirewitness.analyser.archive.spark.java import Java, write_launcher
from wirewitness.analyser.base.extras import how_to_install
from wirewitness.analyser.base.private_files import TemporaryFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What goes wrong in Spark, as sentences.
#
# In: a block that uses Spark. Out: NotInstalled when packages are missing, JobFailed with the line of a worker's
# trace that says what happened.

_NAMED_ERROR = re.compile(r"[\w.]+(Error|Exception)\b")
# DatasetError as a trace names it, wherever its class is.
_UNUSABLE = re.compile(r"(?:[\w.]+\.)?DatasetError: (.+)")
# What a store answered a worker in the end.
_OF_STORE = re.compile(r"[\w.]+: \[Errno \d+\] (?P<why>.+): '(?P<name>[a-z0-9]+://.+)'")
_DISK_FULL = "No space left on device"


class NotInstalled(Exception):
    """A package that archives need is missing; the text is one sentence."""


class JobFailed(Exception):
    """A job of Spark failed; the text is one line. is_disk_full: for want of space, which is no fault of ours.

    unusable: what is wrong with the dataset, or with a store, where that is the cause.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.is_disk_full = _DISK_FULL in text
        found = _UNUSABLE.match(text)
        of_store = _OF_STORE.match(text)
        self.unusable = found[1] if found else f"{of_store['name']}: {of_store['why']}." if of_store else None


@contextmanager
def spark_faults() -> Iterator[None]:
    """Raises NotInstalled at the start, JobFailed for what Spark raises in the block."""
    try:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
    except ImportError as error:
        raise NotInstalled(f"archives need PySpark and what goes with it; {how_to_install('archive')}") from error
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:  # the latter where PySpark has no type of it: a worker was lost
        raise JobFailed(cause_of(str(error))) from error


def cause_of(text: str) -> str:
    """The line of a trace that says what happened."""
    lines = [line.removeprefix(": ").strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if _NAMED_ERROR.match(line)]
    return telling[-1] if telling else (lines or ["no reason given"])[0]


LOOPBACK = "127.0.0.1"
STANDALONE = "spark://"
LOG_SETTINGS = "log4j2.properties"
# The masters that Spark knows.
MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://.+|yarn|k8s://.+")
_ANSWER_S = 10

_QUIET = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %c{{1}}: %m%n
"""

# Java moves packed rows here and computes little: its second compiler takes twice the time that it saves in short runs.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# What the pipeline needs wherever it runs. Rows hold packed columns of up to 4 MB, so batches are cut by bytes.
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # partitions are shards: their number means something
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8388608",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}


class SessionError(Exception):
    """Spark could not be started; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How Spark is started.

    master: None for `local[*]`, or what spark-submit was told. driver_memory, executor_memory, executor_overhead: as
    Java writes sizes; the overhead is where Python workers live on YARN and Kubernetes. folder: where shuffles and
    temporary files go (None: the system's). ui: serve Spark's own pages. more: further Spark settings, which win.
    """

    master: str | None = None
    app_name: str = "wirewitness"
    driver_memory: str = "640m"
    executor_memory: str = "640m"
    executor_overhead: str = "1g"
    folder: Path | None = None
    ui: bool = False
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Everything runs in this process and its Java."""
        return self.master is None or self.master == "local" or self.master.startswith("local[")


def started_by_spark_submit() -> bool:
    """Spark's Java runs already and has its own settings."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def open_session(settings: SessionSettings, java: Java | None) -> Iterator[SparkSession]:
    """A SparkSession for the time of the block.

    java: what Spark's Java is started with; None under spark-submit. A session that is open already, such as a
    notebook's, is used as it is and stays open. Raises SessionError when Spark does not start.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    with TemporaryFolder("spark", settings.folder) as folder:
        work = Path(folder)
        spark = _started(settings, java, work)
        try:
            if not settings.is_local:
                spark.sparkContext.addPyFile(str(pack_code(work / "wirewitness-code.zip")))
            yield spark
        finally:
            spark.stop()


def spark_settings(settings: SessionSettings, work: Path) -> dict[str, str]:
    """Spark's settings by name. work: folder of this session."""
    told = dict(_SETTINGS)
    if not started_by_spark_submit():
        told |= {
            "spark.master": settings.master or "local[*]",
            "spark.app.name": settings.app_name,
            "spark.driver.memory": settings.driver_memory,
            "spark.executor.memory": settings.executor_memory,
            "spark.executor.memoryOverhead": settings.executor_overhead,
            "spark.driver.extraJavaOptions": f"{_JAVA_OPTIONS} -Dlog4j2.configurationFile=file:{work / LOG_SETTINGS}",
            "spark.sql.warehouse.dir": str(work / "warehouse"),
            "spark.local.dir": str(work),
            "spark.ui.enabled": str(settings.ui).lower(),
        }
    return told | dict(settings.more)


def _started(settings: SessionSettings, java: Java | None, work: Path) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    (work / LOG_SETTINGS).write_text(_QUIET.format(level="error"), encoding="utf-8")
    if java is not None:
        write_launcher(java, work / "java")
    if settings.master is not None and settings.master.startswith(STANDALONE):
        check_answers(settings.master)
    builder: Any = SparkSession.builder
    for name, value in spark_settings(settings, work).items():
        builder = builder.config(name, value)
    with _environment(_variables(settings, java, work)), _without_python_logs():
        try:
            spark: SparkSession = builder.getOrCreate()
        except (PySparkException, OSError, RuntimeError) as error:
            raise SessionError(f"Spark does not start: {_last_words(work) or _first_line(error)}") from error
        except Exception as error:  # py4j's, whose types are made at run time
            raise SessionError(f"Spark does not start: {_first_line(error)}") from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def check_answers(master: str) -> None:
    """Spark itself would try for a minute and then speak of something else. Raises SessionError."""
    refused = []
    for place in master.removeprefix(STANDALONE).split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise SessionError(f"{master} is no Spark master: write {STANDALONE}HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
        except OSError as error:
            refused.append(f"{place}: {error.strerror or error}")
        else:
            return
    raise SessionError(f"no Spark master answers at {', '.join(refused)}")


def _variables(settings: SessionSettings, java: Java | None, work: Path) -> dict[str, str]:
    """Environment of Spark's Java, which its Python workers take over."""
    variables: dict[str, str] = {}
    if java is not None:
        variables["JAVA_HOME"] = str(work / "java")
    if not started_by_spark_submit():
        # The workers' Python; on a cluster the one of the same path.
        variables |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if settings.is_local or f"//{LOOPBACK}:" in (settings.master or ""):
        variables |= {} if "SPARK_LOCAL_IP" in os.environ else {"SPARK_LOCAL_IP": LOOPBACK}
    root = source_root()
    if settings.is_local and root is not None:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables for the time of the block: they are Spark's, not ours."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _without_python_logs() -> Iterator[None]:
    """py4j logs a trace of its own for every error that it also raises."""
    logger = logging.getLogger("py4j")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix(":").strip() for line in lines if "Exception: " in line or "Error: " in line]
    return (causes or lines or [type(error).__name__])[0]


def _last_words(work: Path) -> str:
    try:
        lines = (work / "java" / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    telling = [line.strip() for line in lines if "Exception" in line or "Error" in line]
    return (telling or [line.strip() for line in lines if line.strip()] or [""])[-1 if not telling else 0]
