# SPDX-License-Identifier: LGPL-2.1-or-later
"""How little perf's way through a store costs in requests: what was told once is not asked again."""
import os

import asked
import programs
import tools

IDS = 40


def fill(place, store):
    first = programs.small(place / "small")
    for number in range(IDS):
        ident = f"{number % 8:02x}{number:06x}{first.id[8:]}"
        program = programs.forge(first, ident, place / f"p{number}")
        programs.into_store(store, ident, program.path, program.path)


def walk(top):
    """As perf lists its cache (util/build-id.c): all names first, and then each link. Returns their texts."""
    names = [f"{top}/{fan}/{name}" for fan in os.listdir(top) for name in os.listdir(f"{top}/{fan}")]
    return {name[len(str(top)):]: (os.readlink(name), os.lstat(name).st_size) for name in names}


def test_links_come_with_their_names(mount, mode, place, store):
    """Of a directory of links the kernel is told what they are while it lists them, so that nobody looks each of them up."""
    fill(place, store)
    native = walk(store / ".build-id")

    def walked():
        """On a mount of which the kernel knows nothing yet. What it is told holds for a second, which it may lose on the way."""
        m = mount()
        with asked.counted(m) as sent:
            assert walk(m / ".build-id") == native
        inodes = m.status()["inodes"]
        m.unmount()
        assert inodes >= IDS
        # ".build-id", and the directories in it
        return sent["FUSE_LOOKUP"] <= 1 + 8

    tools.wait_until(walked, "a walk without a look at each link", deadline=40)


def test_links_that_were_told_are_forgotten(mount, place, store):
    """What the kernel was given with a listing it gives back like any other."""
    fill(place, store)
    m = mount()
    names = list(walk(m / ".build-id"))
    for _ in range(3):
        walk(m / ".build-id")
    assert m.status()["inodes"] > IDS
    for path in (store / ".build-id").glob("*/*"):
        path.unlink()

    def forgotten():
        # by looking at a name the kernel learns that it is gone
        there = [name for name in names if os.path.lexists(f"{m}/.build-id{name}")]
        return not there and m.status()["inodes"] < IDS

    tools.wait_until(forgotten, "the kernel to forget")
