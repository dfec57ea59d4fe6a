# SPDX-License-Identifier: LGPL-2.1-or-later
"""The form of all tables of benchmarks: the cost of bidfs, the cost of a peer, their ratio and its target."""
import json
import os
import statistics
import subprocess
import textwrap

# names of the native file system in the table of all targets
NATIVE = ("native", "directory", "links")

# the rows of targets and their subjects
ROWS = {
    "P1": "stat of a cached name",
    "P2": "open and close, no_open mode",
    "P3": "open, read 4 KiB, close, no_open mode",
    "P4": "the same with passthrough",
    "P5": "ELF file read by a tool",
    "P6": "a large file from end to end",
    "P7": "a large file here and there, and mapped",
    "P8": "memory",
    "P9": "many clients at once",
    "P10": "lookup by the number of ids",
    "P11": "listing",
    "P12": "start",
    "P13": "scan of a tree",
    "P14": "adding a tree",
    "P15": "the id of a file",
    "P16": "a cache miss",
    "P17": "repeated open of a download",
    "P18": "absent artifact",
    "P19": "many openers of one missing file",
    "P20": "many misses, distinct ones",
    "P21": "perf's commands, and debuggers",
    "P22": "durable additions",
    "P25": "verify of the store",
    "P26": "the daemon confines itself",
    "data": "the builds of a recording",
}


def number(value):
    """Format with four digits and without an exponent."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.5f}"


def digits(value):
    """Format a ratio with three digits."""
    return number(float(f"{value:.3g}"))


def in_unit(value, unit):
    """Format a time with the unit that suits it; @unit is "s", "ms" or "us", other units stay."""
    scale = {"s": 1, "ms": 1e-3, "us": 1e-6}
    if unit in scale:
        value *= scale[unit]
        unit = "s" if value >= 1 else "ms" if value >= 1e-3 else "us"
        value /= scale[unit]
    return f"{number(value)} {unit}".strip()


def quotients(over, under):
    """Return the ratio of each round: the load of the machine then is in both values."""
    return [a / b for a, b in zip(over, under)]


class Figures:
    def __init__(self):
        self.values = {}  # metric -> view -> a value of each round
        self.units = {}
        self.lines = []  # lines of the table, as dictionaries
        self.curves = {}  # plot -> label -> points
        self.notes = []  # peers and figures that are not measured, with the reason

    def note(self, metric, unit, views):
        """Add a round: {view: value}."""
        self.units[metric] = unit
        for view, value in views.items():
            self.values.setdefault(metric, {}).setdefault(view, []).append(value)

    def take(self, output):
        """Add all rounds from the JSON lines that a program printed."""
        for row in map(json.loads, output.splitlines()):
            self.values.setdefault(row["metric"], {}).update(row["views"])
            self.units[row["metric"]] = row["unit"]

    def median(self, metric, view):
        return statistics.median(self.values[metric][view])

    def without(self, what, why):
        self.notes.append(f"without {what}: {why}")

    def compare(self, row, metric, ours, other, target=None, above=False, faster=False, wanted=None, most=None):
        """
        Add a line with the ratio of `ours` to `other`, or with `faster` of `other` to `ours`. `target` is a ceiling, with `above` a
        floor. A median of `ours` of at most `most`, in its unit, meets the target as well. `wanted` is the text of a target that is
        more than a ratio.
        """
        views = self.values.get(metric, {})
        if target is not None:
            wanted = wanted or f"{'>=' if above else '<='} {digits(target)}"
        if ours not in views or other not in views:
            # Figures.without() has named the missing peer
            self.lines.append({"row": row, "metric": metric, "ours": ours, "other": other, "wanted": wanted or ""})
            return
        over, under = (views[other], views[ours]) if faster else (views[ours], views[other])
        medians = [statistics.median(views[view]) for view in (ours, other)]
        cells = {"names": (ours, other), "ours": f"{ours} {in_unit(medians[0], self.units[metric])}",
                "other": f"{other} {in_unit(medians[1], self.units[metric])}"}
        self.judge({"row": row, "metric": metric + (": times as fast" if faster else "")} | cells, quotients(over, under), target,
                   above, wanted, much=medians[0] / most if most else None)

    def limit(self, row, metric, unit, values, target=None, above=False):
        """Add a line for a value that is compared with its target alone, in the same unit."""
        self.judge({"row": row, "metric": metric, "names": ("", ""), "ours": in_unit(statistics.median(values), unit), "other": ""},
                   values, target, above, unit=unit)

    def judge(self, line, values, target, above, wanted=None, unit=None, much=None):
        def shown(value):
            return digits(value) if unit is None else in_unit(value, unit)

        middle, low, high = statistics.median(values), min(values), max(values)
        line |= {"value": middle, "ratio": shown(middle) if unit is None else "", "wanted": wanted or "", "result": "",
                 "spread": f"({shown(low)} .. {shown(high)})" if low != high else ""}
        if target is not None:
            line["wanted"] = wanted or f"{'>=' if above else '<='} {shown(target)}"
            of_wanted = target / middle if above else middle / target
            if much is not None:
                of_wanted = min(of_wanted, much)
            good, missed = of_wanted <= 1, max(of_wanted - 1, 0)
            line |= {"met": good, "missed": missed, "result": "met" if good else f"missed, {percent(missed)}"}
        self.lines.append(line)

    def text(self):
        form = "{:4} {:44} {:27} {:28} {:>6} {:>18} {:>15} {}"
        lines = [*self.notes, *([""] if self.notes else [])]
        lines.append(form.format("row", "metric", "bidfs", "against", "ratio", "(min .. max)", "target", ""))
        for line in self.lines:
            cells = [line[name] for name in ("row", "metric", "ours", "other")]
            if "value" in line:
                cells += [line[name] for name in ("ratio", "spread", "wanted", "result")]
            else:
                cells += ["", "", line["wanted"], "not measured"]
            lines.append(form.format(*cells))
        lines = [line.rstrip() for line in lines]
        return "\n".join(lines)

    def save(self, path):
        path.write_text(json.dumps({"lines": self.lines, "curves": self.curves, "notes": self.notes}), encoding="utf-8")


def percent(missed):
    return f"{100 * missed:.{0 if missed >= 0.01 else 1}f} %" if missed < 1 else f"{missed + 1:.1f} x"


def summary(lines):
    """Return for each row the number of targets that are met, and the one that is missed by most."""
    rows = [f"{'row':4} {'subject':42} {'met':>9}  missed by most"]
    all_met = all_targets = 0
    for row, what in ROWS.items():
        mine = [line for line in lines if line["row"] == row]
        wanted = [line for line in mine if "met" in line]
        met = sum(line["met"] for line in wanted)
        all_met, all_targets = all_met + met, all_targets + len(wanted)
        share = f"{met} of {len(wanted)}" if wanted else "no target" if any("value" in line for line in mine) else "-"
        worst = max(wanted, key=lambda line: line["missed"], default=None)
        most = ""
        if worst and not worst["met"]:
            ours, other = worst["names"]
            most = worst["metric"] + (f", {ours} beside {other}" if other else "") + f": by {percent(worst['missed'])}"
        elif not mine:
            most = "not measured"
        rows.append(f"{row:4} {what:42} {share:>9}  {most}".rstrip())
    return "\n".join([*rows, "", f"{all_met} of {all_targets} targets are met"])


def missed(lines):
    """Return the missed targets, row by row, as each needs an explanation."""
    rows = []
    for row in ROWS:
        mine = [line for line in lines if line["row"] == row and not line.get("met", True)]
        named = [", ".join(filter(None, (line["metric"], " / ".join(filter(None, line["names"])), line["wanted"]))) +
                 f" ({percent(line['missed'])})" for line in mine]
        if named:
            rows += textwrap.wrap("; ".join(named), 126, initial_indent=f"{row:5}", subsequent_indent=" " * 5)
    return "\n".join(["missed:", *(rows or ["none"])])


def table(lines):
    """Return the table of all lines with a target. Each has the cost of bidfs, and that of the native file system or of a peer."""
    form = "{:4} {:48} {:28} {:>11} {:27} {:>7} {:>20} {:>15} {}"
    rows = [form.format("row", "metric", "bidfs", "native", "peer", "ratio", "(min .. max)", "target", "")]
    for line in lines:
        if not line["wanted"]:
            continue
        other = line["names"][1] if "names" in line else line["other"]
        native, peer = ("", line["other"])
        if other in NATIVE:
            native, peer = line["other"].removeprefix(other).strip(), ""
        rows.append(form.format(line["row"], line["metric"], line["ours"], native, peer, line.get("ratio", ""),
                                line.get("spread", ""), line["wanted"], line.get("result", "not measured")))
    return "\n".join(line.rstrip() for line in rows)


def machine():
    """Describe the machine that the figures come from."""
    return f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, Linux {os.uname().release}"


def plot(directory, name, title, xlabel, ylabel, series, logscale="x"):
    """Draw an SVG of {label: [(x, y)]} with gnuplot."""
    directory.mkdir(parents=True, exist_ok=True)
    script = [f"set terminal svg size 640,400 background rgb 'white'; set output '{directory / name}.svg'",
              f"set title '{title}'; set xlabel '{xlabel}'; set ylabel '{ylabel}'; set key left top; set grid",
              f"set logscale {logscale}" + ("" if "y" in logscale else "; set yrange [0:*]")]
    plots = []
    for number, (label, points) in enumerate(series.items()):
        script.append(f"$data{number} << EOD\n" + "\n".join(f"{x} {y}" for x, y in points) + "\nEOD")
        plots.append(f"$data{number} with linespoints title '{label}' noenhanced")
    subprocess.run(["gnuplot"], input="\n".join([*script, "plot " + ", ".join(plots)]), text=True, check=True)
