# SPDX-License-Identifier: LGPL-2.1-or-later
"""Figures as a document: the parts of docs/PERFORMANCE.md that are measured, and its plots."""
import re
import subprocess


def place_of(name):
    return rf"<!-- {name} -->\n.*?<!-- end -->"


def require(path, names):
    """Exit if the document lacks a place for one of these: better before all is measured than after."""
    document = path.read_text(encoding="utf-8")
    for name in names:
        if not re.search(place_of(name), document, re.DOTALL):
            raise SystemExit(f"run: '{path}' has no place for '{name}': a line '<!-- {name} -->' and a line '<!-- end -->'")


def put(path, name, command, text):
    """What `command` printed, in the place that the document has for `name`: between '<!-- name -->' and '<!-- end -->'."""
    document = path.read_text(encoding="utf-8")
    lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    block = f"<!-- {name} -->\n```\n$ {command}\n{lines}\n```\n<!-- end -->"
    document = re.sub(place_of(name), lambda _: block, document, count=1, flags=re.DOTALL)
    path.write_text(document, encoding="utf-8")


def plot(directory, name, title, xlabel, ylabel, series, logscale="x"):
    """An SVG of {label: [(x, y)]} by gnuplot."""
    directory.mkdir(parents=True, exist_ok=True)
    script = [f"set terminal svg size 640,400 background rgb 'white'; set output '{directory / name}.svg'",
              f"set title '{title}'; set xlabel '{xlabel}'; set ylabel '{ylabel}'; set key left top; set grid",
              f"set logscale {logscale}" + ("" if "y" in logscale else "; set yrange [0:*]")]
    plots = []
    for number, (label, points) in enumerate(series.items()):
        script.append(f"$data{number} << EOD\n" + "\n".join(f"{x} {y}" for x, y in points) + "\nEOD")
        plots.append(f"$data{number} with linespoints title '{label}' noenhanced")
    subprocess.run(["gnuplot"], input="\n".join([*script, "plot " + ", ".join(plots)]), text=True, check=True)
