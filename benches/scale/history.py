"""Results of earlier runs, a JSON object per line, and the comparison of a new one with them."""

import json
import statistics

# Runs of the same row and machine whose median counts.
LAST = 7
# The part of that median by which a rate may fall.
TOLERANCE = 0.2
# Fields by which two runs of a row are comparable: its parameters decide the digest, and the machine also the rate.
RATE_KEY = ("name", "parameters", "machine")
DIGEST_KEY = ("name", "parameters")


def read(path):
    """Returns the objects of a history, the oldest first; none if there is no file."""
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number}: found {line[:60]!r}, expected a JSON object: {error}") from error
    return rows


def append(path, row):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row, sort_keys=True) + "\n")


def alike(rows, row, key):
    return [other for other in rows if all(other.get(field) == row[field] for field in key)]


def judge(rows, row):
    """Returns sentences on results that are worse than in earlier runs: pairs of whether it is a failure, and the sentence."""
    found = []
    rates = [other["rate"] for other in alike(rows, row, RATE_KEY)][-LAST:]
    if rates:
        median = statistics.median(rates)
        if row["rate"] < (1 - TOLERANCE) * median:
            fall = 1 - row["rate"] / median
            found.append((True, f"{row['name']}: {row['rate'] / 1e6:.3f} million actions/s, {fall:.0%} less than the median of the last {len(rates)} runs on this machine, {median / 1e6:.3f}"))
    before = alike(rows, row, DIGEST_KEY)
    if before and before[-1]["digest"] != row["digest"]:
        found.append((False, f"{row['name']}: the digest is {row['digest'][:16]}, and was {before[-1]['digest'][:16]} at commit {before[-1]['commit']}: results have changed"))
    return found
