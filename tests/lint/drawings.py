#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare each drawing in docs with the output of docs/draw."""
import subprocess
import sys

from lint import ROOT, finish

DRAW = ROOT / "docs/draw"
texts = sorted((ROOT / "docs").glob("*.draw"))
drawn = {text: subprocess.run([sys.executable, DRAW, text], stdout=subprocess.PIPE, check=True).stdout for text in texts}
old = [text for text, drawing in drawn.items() if text.with_suffix(".svg").read_bytes() != drawing]
finish([f"docs/{text.stem}.svg: not up to date: run 'docs/draw docs/{text.name} >docs/{text.stem}.svg'" for text in old],
       f"{len(texts)} drawings")
