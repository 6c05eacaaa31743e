"""Replays traces of MPI programs on models of machines.

>>> import pdes_replay
>>> report = pdes_replay.run("run.toml", {"network.model": "contention-free"})
>>> report["simulated_time_s"]
>>> pdes_replay.ranks(report).nlargest(5, "late_sender_s")

Tables are pandas frames. Times are in seconds; a report is the dict of its JSON, whose fields docs/report.md describes.
"""

import json as _json
import os as _os
import tempfile as _tempfile
from pathlib import Path as _Path

import pandas as _pandas

from . import _native
from ._native import ReplayError, __version__

__all__ = ["ReplayError", "calls", "links", "matrix", "page", "ranks", "read", "run", "show", "sweep"]


def run(config=None, settings=None):
    """Replays a program and returns its report.

    config: path of a configuration, or a dict of its sections, such as {"trace": {"path": "lu.pdt"}}.
    settings: values by key, such as {"network.epoch_s": "auto"}; they override the configuration.

    Raises ValueError if the configuration is invalid, ReplayError if the run fails. Other threads of Python go on.
    """
    is_path = isinstance(config, (str, _os.PathLike))
    path, sections = (_os.fspath(config), {}) if is_path else (None, config or {})
    assignments = [f"{key}={_toml(value)}" for key, value in (settings or {}).items()]
    return _json.loads(_native.run(path, _json.dumps(sections, default=_os.fspath), assignments))


def sweep(path, output=None, at_once=1, afresh=False):
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


def read(path):
    """Reads a report that `pdes-replay run --report` wrote."""
    return _json.loads(_Path(path).read_text())


def ranks(report):
    """A row for each rank: the parts of its time [s], which add up to `end_s`."""
    columns = _section(report, "breakdown", "analysis.waits")["ranks"]
    seconds = {name.removesuffix("_ps") + "_s": _pandas.Series(column) / 1e12 for name, column in columns.items()}
    return _pandas.DataFrame(seconds).rename_axis("rank")


def calls(report):
    """A row for each kind of call at each call site: the number of calls, and the parts of their time [s]."""
    nodes = _section(report, "call_tree", "analysis.waits")["nodes"]
    keep = [{key: value for key, value in node.items() if not key.endswith("_ps")} for node in nodes]
    return _pandas.DataFrame(keep)


def matrix(report, value="bytes"):
    """The communication matrix, senders by receivers: `bytes`, `messages` or `transfer_s`."""
    found = _section(report, "communication", "analysis.matrix")
    values = _pandas.Series(found["transfer_ps" if value == "transfer_s" else value])
    values = values / 1e12 if value == "transfer_s" else values
    frame = _pandas.DataFrame({"from": found["from"], "to": found["to"], "value": values})
    every = range(found["groups"])
    return frame.pivot(index="from", columns="to", values="value").reindex(index=every, columns=every).fillna(0)


def links(report):
    """A row for each link: bytes, and the mean use of its capacity from 0 to 1; without names above 4096 links."""
    return _pandas.DataFrame({name: column for name, column in _section(report, "links", "analysis.links")["all"].items()})


def page(report, output, other=None):
    """Writes the page of a report, or of its difference to another one, and returns its path. Reports are dicts or paths."""
    with _tempfile.TemporaryDirectory() as scratch:
        paths = [_path(one, scratch, name) for one, name in ((report, "a.json"), (other, "b.json"))]
        _native.page(paths[0], paths[1], _os.fspath(output))
    return _Path(output)


def show(report, other=None, height=800):
    """Shows the page of a report in a notebook."""
    import html

    with _tempfile.TemporaryDirectory() as scratch:
        text = page(report, _Path(scratch) / "page.html", other).read_text()
    from IPython.display import HTML

    return HTML(f'<iframe srcdoc="{html.escape(text)}" style="width:100%;height:{height}px;border:0"></iframe>')


def _path(report, scratch, name):
    if report is None or isinstance(report, (str, _os.PathLike)):
        return report and _os.fspath(report)
    path = _Path(scratch) / name
    path.write_text(_json.dumps(report))
    return _os.fspath(path)


def _section(report, name, key):
    if report.get(name) is None:
        raise ValueError(f"the report has no {name}: replay with {key} = true")
    return report[name]


def _toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, _os.PathLike)):
        return _json.dumps(_os.fspath(value))
    return str(value)


def _number(label):
    for kind in (int, float):
        try:
            return kind(label)
        except ValueError:
            pass
    return label
