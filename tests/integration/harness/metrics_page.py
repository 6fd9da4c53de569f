"""The tables of docs/metrics.md. A row is a metric: its name, its type and labels, its meaning, and what to do with it.
The program says the second and the third; the others are written by hand."""

import re

# Labels whose values are a fixed set, which is part of the contract.
FIXED = ("reason", "stage", "state", "op", "engine", "cause", "result")
_ROW = re.compile(r"\| `((?:framelane|process)_\w+)` \|")


def _labels(scrapes, name):
    """{label: [value, ...]}, in the order of the scrapes."""
    found = {}
    for scrape in scrapes:
        for suffix in ("", "_bucket"):
            for labels, _ in scrape.samples.get(name + suffix, []):
                for label, value in labels.items():
                    values = found.setdefault(label, [])
                    if value not in values:
                        values.append(value)
    found.pop("le", None)
    return found


def _quoted(values):
    return ", ".join(f"`{value}`" for value in values)


def described(scrapes, name):
    """(type and labels, meaning) of a metric, as its row has them."""
    scrape = next(one for one in scrapes if name in one.types)
    labels = ", ".join(f"{label} = {_quoted(values)}" if label in FIXED else label
                       for label, values in _labels(scrapes, name).items())
    return f"{scrape.types[name]}{': ' if labels else ''}{labels}", scrape.helps[name]


def rewritten(page, scrapes):
    """The page with what these scrapes, which together have every metric and label, say of its rows. Nothing stands between
    the rows of a table, since an empty line would end it."""
    lines = []
    for line in page.split("\n"):
        row = _ROW.match(line)
        if row:
            cells = re.split(r"(?<!\\)\|", line)
            assert len(cells) == 6, f"a row has four cells: {line}"
            kind, meaning = described(scrapes, row.group(1))
            line = f"| `{row.group(1)}` | {kind} | {meaning} |{cells[4]}|"
            if lines[-1] == "" and _ROW.match(lines[-2]):
                lines.pop()
        lines.append(line)
    return "\n".join(lines)


def rows(page):
    return [match.group(1) for match in map(_ROW.match, page.split("\n")) if match]
