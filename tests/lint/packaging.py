#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare the lists of build dependencies, and check that the files for Kubernetes are complete."""
import re

from lint import ROOT, finish, skip

try:
    import yaml
except ImportError:
    skip("needs python3-yaml")


def needed():
    """Return the libraries that a build without tests needs, by file that lists them: {file: libraries}."""
    control = (ROOT / "debian/control").read_text().split("Build-Depends:")[1].split("Standards-Version")[0]
    texts = {
        "contrib/packages": "\n".join(re.findall(r"^build\t.*", (ROOT / "contrib/packages").read_text(), re.M)),
        # without alternatives, and without packages for tests
        "debian/control": re.sub(r"\|[^,]*|\S+ <!nocheck>", "", control),
    }
    return {name: set(re.findall(r"\b(?:lib|zlib1g)[\w.+-]*-dev\b", text)) - {"libc6-dev"} for name, text in texts.items()}


def incomplete(document):
    """Return the volumes that a container of a pod names and the pod lacks."""
    spec = document["spec"].get("template", document)["spec"]
    there = {volume["name"] for volume in spec["volumes"]}
    for container in spec["containers"]:
        for volume in container["volumeMounts"]:
            if volume["name"] not in there:
                yield f"{container['name']}: no volume '{volume['name']}'"


def main():
    lists = needed()
    wanted = lists["contrib/packages"]
    problems = [f"{name}: lacks {sorted(wanted - found)}, has {sorted(found - wanted)} more" for name, found in lists.items()
                if found != wanted]
    for name in ("daemonset.yaml", "sidecar.yaml"):
        for document in yaml.safe_load_all((ROOT / "contrib/container" / name).read_text()):
            if document["kind"] in ("Pod", "DaemonSet"):
                problems += [f"contrib/container/{name}: {problem}" for problem in incomplete(document)]
    finish(problems, f"{len(wanted)} libraries")


if __name__ == "__main__":
    main()
