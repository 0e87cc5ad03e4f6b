#!/usr/bin/env python3
"""Follows the README word for word in a clean clone, as a newcomer would.

Every fenced `sh` block up to "## Compatibility" is typed into a terminal, in
order; the block after it, if there is one without a language, is what must be
printed. There, <name> stands for something without spaces, which later commands
may name, and a line … for lines left out. Runs of spaces count as one. A hub
keeps its terminal; starting the next one first presses Ctrl+C in that.
"""

import argparse
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 300  # seconds; the first command compiles everything
UNTIL = "## Compatibility"
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Failure(Exception):
    pass


class Terminal:
    """One command in a terminal of its own."""

    def __init__(self, line, folder, env, log):
        self.line, self.text, self.code = line, "", None
        self.errors = open(log, "ab+")
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.dup2(self.errors.fileno(), 2)
            os.execvpe("bash", ["bash", "-c", line], env)

    def read(self, seconds):
        """Take what is printed; False when the command has ended."""
        if self.code is not None:
            return False
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        if not data:
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
            os.close(self.fd)
            return False
        self.text += ANSI.sub("", data.decode(errors="replace")).replace("\r\n", "\n")
        return True

    def interrupt(self):
        """Press Ctrl+C, and wait for the end."""
        os.write(self.fd, b"\x03")
        late = time.monotonic() + 30
        while self.read(1):
            if time.monotonic() > late:
                raise Failure(f"{self.line}: does not end with Ctrl+C")

    def kill(self):
        if self.code is None:
            os.killpg(self.pid, signal.SIGKILL)
            while self.read(5):
                pass

    def complaint(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")


def blocks(text):
    """(language, lines) of every fenced block."""
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield match.group(1), match.group(2)


def tidy(text):
    return "\n".join(re.sub(r" +", " ", line).strip() for line in text.strip().split("\n"))


def pattern(shown, known):
    """What is shown as a regular expression; variables are groups."""
    parts, names = [], []
    for line in tidy(shown).split("\n"):
        if line == "…":
            parts.append(r"(?:.*\n)*?")
            continue
        built = ""
        for piece in re.split(r"(<[a-z]+>)", line):
            name = piece[1:-1]
            if not re.fullmatch(r"<[a-z]+>", piece):
                built += re.escape(piece)
            elif name == "channel" and name in known:
                built += re.escape(known[name])
            else:
                names.append(name)
                built += r"(\S+?)"
        parts.append(built + r"\n")
    return re.compile("".join(parts)), names


class Newcomer:
    def __init__(self, folder, env):
        self.folder, self.env = folder, env
        self.known, self.hub, self.started = {}, None, None
        self.log = os.path.join(folder, "..", "stderr")

    def follow(self, text):
        found = list(blocks(text[: text.index(UNTIL)]))
        steps = 0
        for i, (language, body) in enumerate(found):
            if language != "sh":
                continue
            shown = found[i + 1][1] if i + 1 < len(found) and found[i + 1][0] == "" else None
            lines = body.strip().split("\n")
            for n, line in enumerate(lines):
                self.step(line, shown if n == len(lines) - 1 else None)
                steps += 1
        return steps

    def step(self, line, shown):
        line = re.sub(r"<([a-z]+)>", lambda m: self.known[m.group(1)], line)
        print("$", line, flush=True)
        serves = line.endswith(" serve")
        if serves and self.hub:
            self.hub.interrupt()
            # go run answers 1 to Ctrl+C, whatever its program did.
            if '"msg":"stopped"' not in self.hub.complaint():
                raise Failure(f"the hub did not stop in good order: {self.hub.complaint()}")
        terminal = Terminal(line, self.folder, self.env, self.log)
        if serves:
            self.hub = terminal
            shown = self.started = shown or self.started
        late = time.monotonic() + PATIENCE
        while True:
            alive = terminal.read(0.2)
            if serves and pattern(shown, {})[0].fullmatch(tidy(terminal.text) + "\n"):
                break
            if not alive:
                break
            if time.monotonic() > late:
                terminal.kill()
                raise Failure(f"{line}: still runs after {PATIENCE} s\n{terminal.text}\n{terminal.complaint()}")
        if not serves and terminal.code != 0:
            raise Failure(f"{line}: exit {terminal.code}\n{terminal.text}\n{terminal.complaint()}")
        if serves and terminal.code is not None:
            raise Failure(f"{line}: ended with {terminal.code}\n{terminal.text}\n{terminal.complaint()}")
        if shown:
            self.compare(line, shown, terminal.text)

    def compare(self, line, shown, printed):
        wanted, names = pattern(shown, self.known)
        match = wanted.fullmatch(tidy(printed) + "\n")
        if not match:
            raise Failure(f"{line}\n--- the README shows\n{tidy(shown)}\n--- printed\n{tidy(printed)}")
        self.known.update(zip(names, match.groups()))


def clone(root, into, worktree):
    subprocess.run(["git", "clone", "-q", root, into], check=True)
    if not worktree:
        return
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "-m", "-o", "--exclude-standard"], check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = os.path.join(root, name), os.path.join(into, name)
        if not os.path.exists(source):
            if os.path.exists(target):
                os.remove(target)
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target)


def main():
    parser = argparse.ArgumentParser(description="follow the README in a clean clone")
    parser.add_argument("root")
    parser.add_argument("venv", help="a Python environment with AG2")
    parser.add_argument("--worktree", action="store_true", help="take what is not committed along")
    options = parser.parse_args()
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 7440)) == 0:
            sys.exit("newcomer: port 7440 is in use, and the README's hub needs it")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        into = os.path.join(folder, "parley")
        clone(options.root, into, options.worktree)
        env = {k: v for k, v in os.environ.items() if not k.startswith("PARLEY_")}
        env["PATH"] = os.path.join(os.path.abspath(options.venv), "bin") + os.pathsep + env["PATH"]
        newcomer = Newcomer(into, env)
        try:
            with open(os.path.join(into, "README.md"), encoding="utf-8") as readme:
                steps = newcomer.follow(readme.read())
        except Failure as failure:
            sys.exit(f"newcomer: {failure}")
        finally:
            if newcomer.hub:
                newcomer.hub.kill()
    print(f"newcomer: {steps} commands did what the README says ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
