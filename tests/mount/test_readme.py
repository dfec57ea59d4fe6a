# SPDX-License-Identifier: LGPL-2.1-or-later
"""The session of README.md prints what README.md says, and its links lead somewhere."""
import re

import pytest

import documents
import tools
from test_perf import why_no_recording


@pytest.fixture(scope="module")
def stage():
    with documents.opened() as made:
        yield made


def test_the_session_prints_what_the_page_says(needs_root, stage, place):
    if reason := why_no_recording():
        pytest.skip(reason)
    documents.check(stage.run(place, (tools.ROOT / "README.md").read_text()))


@pytest.mark.parametrize("page", ["README.md", "docs/TOOLS.md"])
def test_each_link_leads_to_a_file(page):
    links = re.findall(r"\]\(((?!https?:)[^)#]+)", (tools.ROOT / page).read_text())
    assert links and not [link for link in links if not (tools.ROOT / page).parent.joinpath(link).exists()]


def test_the_page_fits_a_screen_or_three():
    assert len((tools.ROOT / "README.md").read_bytes()) <= 6 * 1024
