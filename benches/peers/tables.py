"""Tables of runs, as text or Markdown."""

import statistics


def median(runs, field):
    return statistics.median(getattr(run, field) for run in runs)


def table(heads, rows, markdown, names):
    """Lines of cells below their heads; the first `names` columns are of names and the others of numbers."""
    if markdown:
        lines = [heads, ["---"] * names + ["---:"] * (len(heads) - names)] + rows
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)
    widths = [max(len(line[i]) for line in [heads] + rows) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) if i < names else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))) for line in [heads] + rows)
