"""Replays traces of MPI programs on models of machines.

>>> import pdes_replay
>>> report = pdes_replay.run("run.toml", {"network.model": "contention-free"})
>>> report["simulated_time_s"]
>>> pdes_replay.ranks(report).nlargest(5, "late_sender_s")

Tables are pandas frames. Times are in seconds; a report is the dict of its JSON, whose fields docs/report.md describes.
"""

from __future__ import annotations

import json as _json
import os as _os
import tempfile as _tempfile
import warnings as _warnings
from pathlib import Path as _Path
from typing import Any as _Any, Callable as _Callable, Generator as _Generator, Iterator as _Iterator, Union as _Union

import pandas as _pandas

from . import _native
from ._native import Call, Message, Mpi, ReplayError, Request, __version__
from .platform import Platform

__all__ = [
    "Call",
    "Message",
    "Mpi",
    "Platform",
    "ReplayError",
    "Request",
    "calibrate",
    "calls",
    "diagnose",
    "links",
    "matrix",
    "page",
    "problems",
    "ranks",
    "read",
    "run",
    "show",
    "simulate",
    "sweep",
    "what_if",
]

_PathLike = _Union[str, "_os.PathLike[str]"]
_Saved = _Union[_PathLike, "dict[str, _Any]"]
_Config = _Union[_PathLike, "dict[str, _Any]", None]
_Settings = _Union["dict[str, _Any]", None]


def run(config: _Config = None, settings: _Settings = None) -> dict[str, _Any]:
    """Replays a program and returns its report.

    config: path of a configuration, or a dict of its sections, such as {"trace": {"path": "lu.pdt"}}; its platform may be a `Platform`.
    settings: values by key, such as {"network.epoch_s": "auto"}; they override the configuration.

    Raises ValueError if the configuration is invalid, ReplayError if the run fails. Other threads of Python go on.
    """
    return _dict(_native.run(_configuration(config, settings)))


def simulate(
    rank: _Callable[[Mpi], _Generator[Call, _Any, _Any]],
    ranks: int,
    config: _Config = None,
    settings: _Settings = None,
) -> dict[str, _Any]:
    """Runs a program in place of a trace and returns its report.

    rank: a function that each rank runs with its `Mpi`; it yields its calls, and is told what they return.

    >>> def rank(mpi):
    ...     if mpi.rank == 0:
    ...         yield mpi.send(1, 0, 1000, "a value")     # to rank 1, with tag 0, of 1000 B
    ...     elif mpi.rank == 1:
    ...         message = yield mpi.receive(0, None, 1000)  # from rank 0, with any tag, of at most 1000 B
    ...         yield mpi.compute(1e6)

    Values are not copied: change none that is sent. Results are the same on any number of threads if ranks exchange data by their calls
    alone. A run that cannot go on in one mode of execution begins anew, and calls the function again.

    Raises ReplayError also if a rank raises an exception, which is its cause.
    """
    name = getattr(rank, "__name__", "program")
    return _dict(_native.simulate(rank, name, ranks, _configuration(config, settings)))


def diagnose(config: _Config = None, settings: _Settings = None, gain: bool = False) -> dict[str, _Any]:
    """Diagnoses a run and returns the dict that `pdes-replay diagnose --json` writes.

    gain: replays the hypothesis of each problem, for the time that the program would save.
    """
    return _dict(_native.diagnose(_configuration(config, settings), gain))


def problems(diagnosis: dict[str, _Any]) -> _pandas.DataFrame:
    """A row for each problem of a diagnosis, the worst first: its name, time [s], share of the time of all ranks, gain [s], sites and advice."""
    columns = ["name", "duration_s", "share", "gain_s", "ranks", "sites", "description", "recommendation"]
    return _pandas.DataFrame(diagnosis["problems"], columns=columns)


def what_if(
    config: _Config,
    hypotheses: _PathLike | dict[str, dict[str, _Any]],
    settings: _Settings = None,
    output: _PathLike | None = None,
    at_once: int = 1,
) -> _pandas.DataFrame:
    """Replays a program and hypotheses about it, and returns a frame with a row for each: simulated time, change, time in wait states, error.

    hypotheses: path of a file, or what it says of each by its name, such as {"even": {"transform": [{"kind": "balance"}]}}.
    output: directory that keeps pages and reports; by default none is kept. at_once: number of replays at the same time.
    """
    given: tuple[str | None, str]
    if isinstance(hypotheses, (str, _os.PathLike)):
        given = (_os.fspath(hypotheses), "")
    else:
        named = [{"name": name, **keys} for name, keys in hypotheses.items()]
        given = (None, _json.dumps({"hypothesis": named}))
    with _tempfile.TemporaryDirectory() as scratch:
        text = _native.what_if(_configuration(config, settings), given, _os.fspath(output or scratch), at_once)
    return _pandas.DataFrame([row for result in _json.loads(text)["hypotheses"] for row in _rows(result)])


def _rows(result: dict[str, _Any]) -> _Iterator[dict[str, _Any]]:
    """A row for a result of a hypothesis, and one for that with the other source of outcomes."""
    other = result.pop("other_outcomes")
    waits = result.pop("wait_states") or {}
    yield {**result, **{name.replace(" ", "_") + "_s": time for name, time in waits.items()}}
    if other is not None:
        yield from _rows(other)


def calibrate(
    *files: _PathLike, speed: float | None = None, quantile: float = 0.5, output: _PathLike | None = None
) -> dict[str, _Any]:
    """Fits a machine to files of measurements and returns the sections of its configuration, for `run` beside a trace.

    speed: of a core [flop/s], in place of the measured one. quantile: of the observations of a size, which represents them.
    output: file for the configuration (TOML), with the quality of each fit.
    """
    text, sections, warnings = _native.calibrate([_os.fspath(file) for file in files], speed, quantile)
    for warning in warnings:
        _warnings.warn(warning, stacklevel=2)
    if output is not None:
        _Path(output).write_text(text)
    return _dict(sections)


def sweep(
    path: _PathLike, output: _PathLike | None = None, at_once: int = 1, afresh: bool = False
) -> _pandas.DataFrame:
    """Runs every combination of a sweep and returns a frame with a row for each: its values, results, and the error if it failed.

    output: directory that keeps the results, from which an interrupted sweep resumes; by default none is kept.
    at_once: number of runs at the same time. afresh: runs all again.
    """
    with _tempfile.TemporaryDirectory() as scratch:
        found = _json.loads(_native.sweep(_os.fspath(path), _os.fspath(output or scratch), at_once, afresh))
    rows = []
    for row in found["rows"]:
        values = {name: _number(label) for name, label in zip(found["axes"], row["labels"])}
        result = row["result"]
        rows.append({**values, "cost": row["cost"], **result.get("Ok", {}), "error": result.get("Err")})
    return _pandas.DataFrame(rows)


def read(path: _PathLike) -> dict[str, _Any]:
    """Reads a report that `pdes-replay run --report` wrote."""
    return _dict(_Path(path).read_text())


def ranks(report: dict[str, _Any]) -> _pandas.DataFrame:
    """A row for each rank: the parts of its time [s], which add up to `end_s`."""
    columns = _section(report, "breakdown", "analysis.waits")["ranks"]
    seconds = {name.removesuffix("_ps") + "_s": _pandas.Series(column) / 1e12 for name, column in columns.items()}
    return _pandas.DataFrame(seconds).rename_axis("rank")


def calls(report: dict[str, _Any]) -> _pandas.DataFrame:
    """A row for each kind of call at each call site: the number of calls, and the parts of their time [s]."""
    nodes = _section(report, "call_tree", "analysis.waits")["nodes"]
    keep = [{key: value for key, value in node.items() if not key.endswith("_ps")} for node in nodes]
    return _pandas.DataFrame(keep)


def matrix(report: dict[str, _Any], value: str = "bytes") -> _pandas.DataFrame:
    """The communication matrix, senders by receivers: `bytes`, `messages` or `transfer_s`."""
    found = _section(report, "communication", "analysis.matrix")
    values = _pandas.Series(found["transfer_ps" if value == "transfer_s" else value])
    values = values / 1e12 if value == "transfer_s" else values
    frame = _pandas.DataFrame({"from": found["from"], "to": found["to"], "value": values})
    every = range(found["groups"])
    return frame.pivot(index="from", columns="to", values="value").reindex(index=every, columns=every).fillna(0)


def links(report: dict[str, _Any]) -> _pandas.DataFrame:
    """A row for each link: bytes, and the mean use of its capacity from 0 to 1; without names above 4096 links."""
    return _pandas.DataFrame({name: column for name, column in _section(report, "links", "analysis.links")["all"].items()})


def page(report: _Saved, output: _PathLike, other: _Saved | None = None) -> _Path:
    """Writes the page of a report, or of its difference to another one, and returns its path. Reports are dicts or paths."""
    with _tempfile.TemporaryDirectory() as scratch:
        first = _path(report, _Path(scratch), "a.json")
        second = None if other is None else _path(other, _Path(scratch), "b.json")
        _native.page(first, second, _os.fspath(output))
    return _Path(output)


def show(report: _Saved, other: _Saved | None = None, height: int = 800) -> _Any:
    """Shows the page of a report in a notebook."""
    import html

    with _tempfile.TemporaryDirectory() as scratch:
        text = page(report, _Path(scratch) / "page.html", other).read_text()
    from IPython.display import HTML

    return HTML(f'<iframe srcdoc="{html.escape(text)}" style="width:100%;height:{height}px;border:0"></iframe>')


def _dict(text: str) -> dict[str, _Any]:
    found: dict[str, _Any] = _json.loads(text)
    return found


def _configuration(config: _Config, settings: _Settings) -> tuple[str | None, str, list[str]]:
    assignments = [f"{key}={_toml(value)}" for key, value in (settings or {}).items()]
    if isinstance(config, (str, _os.PathLike)):
        return _os.fspath(config), "{}", assignments
    return None, _json.dumps(config or {}, default=_plain), assignments


def _plain(value: _Any) -> _Any:
    return value.section() if isinstance(value, Platform) else _os.fspath(value)


def _path(report: _Saved, scratch: _Path, name: str) -> str:
    if isinstance(report, (str, _os.PathLike)):
        return _os.fspath(report)
    path = scratch / name
    path.write_text(_json.dumps(report))
    return _os.fspath(path)


def _section(report: dict[str, _Any], name: str, key: str) -> dict[str, _Any]:
    section: dict[str, _Any] | None = report.get(name)
    if section is None:
        raise ValueError(f"the report has no {name}: replay with {key} = true")
    return section


def _toml(value: _Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, _os.PathLike)):
        return _json.dumps(_os.fspath(value))
    return str(value)


def _number(label: str) -> int | float | str:
    try:
        return int(label)
    except ValueError:
        pass
    try:
        return float(label)
    except ValueError:
        return label
