#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""
Check words and sentences: the words of the field instead of our own, sentences with a named subject, one form of commit subjects.

In pages, comments and docstrings, sentences begin with their subject, and passives name their actor.
Pages and the code in the folders of CLEAN have no word of WORDS. Subjects are checked for the commits that origin/main lacks.
"""
import ast
import io
import re
import subprocess
import tokenize

from lint import ROOT, files, finish, name_of

# the first form of a word that has no ordinary meaning here, and the word to use instead
WORDS = {
    "alien": "foreign layout", "astray": "mismatched", "awaiter": "lock waiter", "belief": "cached by the kernel",
    "fanned": "fanout", "favourite": "preferred source", "flight": "download", "gates": "path permissions", "greeting": "init",
    "heard": "last response",
    "judgement": "response code", "linger": "negative TTL", "lookers": "readdirplus hint", "materialise": "fetch",
    "misled": "cached target differs", "nameless": "unnamed", "pulse": "heartbeat", "scout": "trial request", "settler": "publish",
    "sharer": "handle", "tally": "stats", "ticket": "waiter id", "timekeeper": "timer thread", "unmounter": "unmount helper",
    "unvoid": "tombstone", "vacated": "relocated", "verdict": "cached ELF check", "witness": "trial request",
}
# a download may be in flight, and sockets have SO_LINGER
WORD = re.compile(rf"(?<![A-Za-z])(?<!SO_)(?<!in (?=flight))({'|'.join(WORDS)})s?(?![A-Za-z])", re.I)
# folders of code without these words
CLEAN = ["fs", "include/bid", "store", "tests"]
# passives that name no actor
PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been)\s+(?:not\s+)?(?:told|asked|said|heard)\b", re.I)
OPENING = re.compile(r"(?:What|Whatever|Who|Whom|Whoever|Whose|That|Of|So|Not|Neither|Nor|Nobody|Somebody|Whether)\b")
# a shorter comment is the name of a field, as "of the next object"
SENTENCE_MIN = 4
# suffixes of files besides scripts whose comments begin with #
HASH = {".bash", ".build", ".conf", ".fish", ".in", ".service", ".yaml", ".zsh"}
COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
SUBJECT = re.compile(r"[\w/.,+ -]+: [a-z]\S* \S.*")
SUBJECT_MAX = 65
MAIN = "origin/main"


def paragraphs_of_markdown(text):
    """Yield the prose with its first line number; a cell of a table and an item of a list are paragraphs."""
    text = re.sub(r"^ *```.*?^ *```$", lambda match: "\n" * match[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "X", text))
    paragraph, first = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        begins = re.match(r"\s*(?:[-*] |\d+\. |\||#|$)", line)
        if begins and paragraph:
            yield first, " ".join(paragraph)
            paragraph = []
        if line.lstrip().startswith("|"):
            for cell in line.split("|"):
                yield number, cell.strip()
        elif line.strip() and not line.startswith("#"):
            first = first if paragraph else number
            paragraph.append(re.sub(r"^\s*(?:[-*] |\d+\. )?", "", line))


def paragraphs_of_man(text):
    """Yield the prose of mdoc(7) likewise: a macro line stands for a word, or ends a paragraph."""
    paragraph, first, literal = [], 0, False
    for number, line in enumerate(text.split("\n") + [".Pp"], 1):
        literal = (literal or line.startswith(".Bd")) and not line.startswith(".Ed")
        if re.match(r"\.(?:Sh|Ss|It|Pp|Bl|El|Bd|Ed|Dl)\b", line):
            if paragraph:
                yield first, " ".join(paragraph)
            paragraph = []
        elif line and not literal and not line.startswith((".\\\"", ".Nd", ".Dd", ".Dt", ".Os", ".Nm")):
            first = first if paragraph else number
            # the last argument may end the sentence
            paragraph.append("X" + re.search(r" ?([.:;]?)$", line)[1] if line.startswith(".") else line)


def problems_of_page(path):
    text = path.read_text()
    reader = paragraphs_of_markdown if path.suffix == ".md" else paragraphs_of_man
    for number, paragraph in reader(text):
        for match in WORD.finditer(paragraph):
            yield f"{name_of(path)}:{number}: '{match[0]}': use '{WORDS[match[1].lower()]}'"
        for match in PASSIVE.finditer(paragraph):
            yield f"{name_of(path)}:{number}: '{match[0]}': name who does it"
        for sentence in re.split(r"(?<=[.!?:;])\s+", paragraph):
            if OPENING.match(sentence) and not sentence.endswith("?"):
                yield f"{name_of(path)}:{number}: a sentence begins without its subject: '{sentence[:60]}'"


def problems_of_code(path):
    for number, line in enumerate(path.read_text().split("\n"), 1):
        for match in WORD.finditer(line):
            yield f"{name_of(path)}:{number}: '{match[0]}': use '{WORDS[match[1].lower()]}'"


def comments_of_c(text):
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    for match in COMMENT.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"^\s*\*+ ?", "", match[1], flags=re.M)


def comments_of_python(text):
    """Yield docstrings and comments; comments in consecutive lines are one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield node.body[0].lineno, ast.get_docstring(node)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    yield from joined((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)


def comments_of_shell(text):
    """Yield comments that have their lines to themselves, without the lines on top of the file."""
    yield from joined((number, line) for number, line in enumerate(text.split("\n"), 1) if re.match(r"\s*#(?!!| SPDX)", line))


def joined(lines):
    first, last, comment = 0, -1, ""
    for number, line in lines:
        if number != last + 1:
            yield first, comment
            first, comment = number, ""
        last, comment = number, f"{comment} {line.strip().lstrip('# ')}"
    yield first, comment


def problems_of_comments(path, reader):
    for number, comment in reader(path.read_text()):
        for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z\"'(`@/-])", " ".join(comment.split())):
            capital = sentence[:1].upper() + sentence[1:]
            if len(sentence.split()) >= SENTENCE_MIN and OPENING.match(capital) and not sentence.endswith("?"):
                yield f"{name_of(path)}:{number}: a sentence begins without its subject: '{sentence[:60]}'"
            for match in PASSIVE.finditer(sentence):
                yield f"{name_of(path)}:{number}: '{match[0]}': name who does it"


def reader_of(path):
    """Return the reader of a file's comments, or None."""
    if path.suffix in (".c", ".h"):
        return comments_of_c
    with open(path, "rb") as file:
        program = re.match(rb"#!.*", file.readline(100))
    if path.suffix == ".py" or program and b"python3" in program[0]:
        return comments_of_python
    return comments_of_shell if program or path.suffix in HASH else None


def problems_of_subjects():
    run = subprocess.run(["git", "-C", ROOT, "log", "--format=%h %s", "--no-merges", f"{MAIN}..HEAD"], capture_output=True,
                         text=True)
    if run.returncode:
        print(f"subjects of commits are not checked: git has no {MAIN} here")
        return
    for line in run.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if not SUBJECT.fullmatch(subject) or len(subject) > SUBJECT_MAX:
            yield f"commit {commit}: not 'area: verb object' in {SUBJECT_MAX} characters: '{subject}'"


def main():
    pages = [path for path in files(".md", ".1", ".7", ".8") if path.parent in (ROOT, ROOT / "docs")]
    sources = [path for folder in CLEAN for path in files(".c", ".h", ".py", below=folder) if path.name != "words.py"]
    readers = {path: reader_of(path) for path in files()}
    problems = [problem for page in pages for problem in problems_of_page(page)]
    problems += [problem for source in sources for problem in problems_of_code(source)]
    problems += [problem for path, reader in readers.items() if reader for problem in problems_of_comments(path, reader)]
    problems += problems_of_subjects()
    finish(problems, f"{len(pages)} pages, {len(sources)} files")


if __name__ == "__main__":
    main()
