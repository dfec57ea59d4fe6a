# SPDX-License-Identifier: LGPL-2.1-or-later
"""The sessions of README.md and of the tutorial print what the pages show, and README.md links to each page."""
import re

import pytest

import documents
import tools
from test_perf import why_no_recording


@pytest.fixture(scope="module")
def stage():
    with documents.running() as made:
        yield made


@pytest.mark.parametrize("page", ["README.md", "docs/TUTORIAL.md"])
def test_page_session_prints_the_shown_output(needs_root, stage, workdir, page):
    if reason := why_no_recording():
        pytest.skip(reason)
    documents.check(stage.run(workdir, (tools.ROOT / page).read_text()))


def pages():
    return [tools.ROOT / "README.md", *(tools.ROOT / "docs").glob("*.md"), tools.ROOT / "SECURITY.md"]


def links_of(page):
    """Return the files that a page links to."""
    return [page.parent.joinpath(link).resolve() for link in re.findall(r"\]\(((?!https?:)[^)#]+)", page.read_text())]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_each_link_leads_to_a_file(page):
    assert not [link for link in links_of(page) if not link.exists()]


def test_readme_leads_to_each_page():
    found, ahead = set(), [tools.ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in found:
            found.add(page)
            ahead += [link for link in links_of(page) if link.suffix == ".md" and link.exists()]
    assert not set(pages()) - found
