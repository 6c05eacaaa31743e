#!/usr/bin/env python3
"""Corrupts certificates at random, and checks that each is refused.

    corrupt.py COUNT SEED CERTIFICATE TRACE [CERTIFICATE TRACE ...]

A corruption changes what the certificate says of the run, with the trace given. What would say the same is not made: the first of two
vectors of rates of one instant is not left out, and routes that no message takes stay, as do cuts that end no repeated interval. Nor are
statements changed: bandwidths of links, and which rank of a host an algorithm lets send or receive a message. The number of lines at the
end is set right, so that it refuses nothing.
"""

import random
import sys
from collections import Counter
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check-certificate"
sys.dont_write_bytecode = True


def load_checker():
    loader = SourceFileLoader("check_certificate", str(TOOL))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def shifted(text, random, least=1):
    """Another instant or number, not below zero."""
    delta = random.choice([least, least + 1, least + random.randrange(1000), least + random.randrange(10**9)])
    value = int(text)
    return str(value - delta if value >= delta and random.random() < 0.5 else value + delta)


def scaled(text, random, factors=(0.5, 0.9, 1.1, 2.0)):
    return repr(float(text) * random.choice(factors))


class Certificate:
    def __init__(self, lines, program):
        self.lines, self.program = [line.split() for line in lines[:-1]], program
        self.of = {}
        self.hosts = {words[1]: words[2] for words in self.lines if words[0] == "P"}
        for index, words in enumerate(self.lines):
            self.of.setdefault(words[0], []).append(index)
        crossed = {(words[3], words[4]) for words in self.lines if words[0] == "B"}
        latency = {words[1]: float(words[3]) for words in self.lines if words[0] == "L"}
        # A route without latency takes the same time however often it crosses a fat pipe.
        self.routes = [index for index in self.of.get("R", []) if tuple(self.lines[index][1:3]) in crossed
                       and all(latency[link] > 0 for link in self.lines[index][3:])]
        used = {link for index in self.routes for link in self.lines[index][3:]}
        self.links = [index for index in self.of.get("L", []) if self.lines[index][1] in used]
        times = Counter(words[1] for words in self.lines if words[0] == "X")
        self.changes = [index for index in self.of.get("X", []) if times[self.lines[index][1]] == 1]
        self.network = [index for kind in "BXECD" for index in self.of.get(kind, [])]
        cuts, repeats = self.of.get("cut", []), self.of.get("repeat", [])
        self.cuts = [cut for index in repeats for cut in [cut for cut in cuts if cut < index][-2:]]
        self.marks = self.of.get("since", []) + self.of.get("again", [])
        whole = [index for index, words in enumerate(self.lines) if words[0] not in ("R", "X", "L", "cut")]
        self.whole = whole + self.routes + self.changes + self.cuts

    def corrupted(self, random):
        """The kind of a corruption, and the lines."""
        lines = list(self.lines)
        kinds = {"B": 4, "X": 4, "E": 2, "C": 3, "D": 2, "M": 6, "A": 4, "P": 1, "H": 1, "Z": 2, "R": 2, "L": 2, "envelope": 1,
                 "cut": 2, "repeat": 3, "mark": 3, "missing": 4, "twice": 4, "exchanged": 3}
        while True:
            kind = random.choices(list(kinds), kinds.values())[0]
            pool = {"R": self.routes, "L": self.links, "envelope": [3], "cut": self.cuts, "mark": self.marks, "missing": self.whole,
                    "twice": [index for index, words in enumerate(lines) if words[0] != "cut"], "exchanged": self.network}.get(kind, self.of.get(kind, []))
            if pool:
                break
        index = random.choice(pool)
        words = list(lines[index])
        lines[index] = words
        what = kind
        if kind == "missing":
            del lines[index]
        elif kind == "twice":
            lines.insert(index, words)
        elif kind == "mark":
            # At another action of the rank.
            other = index + random.choice([-1, 1])
            lines[index], lines[other] = lines[other], lines[index]
        elif kind == "exchanged":
            others = [other for other in pool if lines[other][1] != words[1]]
            if not others:
                return self.corrupted(random)
            other = random.choice(others)
            lines[index], lines[other] = lines[other], lines[index]
        elif kind == "envelope":
            words[1] = shifted(words[1], random)
        elif kind == "R":
            place = random.randrange(3, len(words))
            if random.random() < 0.5:
                del words[place]
            else:
                words.insert(place, words[place])
        elif kind in "LHZ":
            # Another latency, speed or factor, by more than the picosecond to which instants are rounded.
            place = {"L": 3, "H": 2, "Z": random.choice([2, 3])}[kind]
            words[place] = scaled(words[place], random)
        elif kind == "X" and random.random() < 0.6:
            place = random.randrange(2, len(words))
            words[place] = shifted(words[place], random) if place % 2 == 0 else scaled(words[place], random, (0.5, 1 - 1e-5, 1 + 1e-5, 2.0))
        elif kind == "X":
            words[1] = shifted(words[1], random, least=3)
        elif kind == "A":
            place = random.choice([1, 2, *range(4, len(words))])
            what = ("begin of A", "end of A", "", "text of A")[min(place, 4) - 1]
            words[place] = shifted(words[place], random) if words[place].isdigit() else words[place] + "x"
        elif kind == "M":
            place = random.randrange(1, 7)
            words[place] = shifted(words[place], random)
            hosts = [self.hosts.get(rank) for rank in (words[place], self.lines[index][place])]
            if place <= 2 and words[8] != "-" and hosts[0] == hosts[1]:
                return self.corrupted(random)
        else:
            # Amounts of computations have fractions.
            place = random.randrange(1, len(words)) if kind != "P" else 2
            change = scaled if kind == "C" and place == 4 else shifted
            if float(words[place]) == 0.0 and change is scaled:
                return self.corrupted(random)
            words[place] = change(words[place], random)
        text = [" ".join(words) for words in lines]
        return what, text + [f"end {len(text)}"]


def main():
    count, seed, files = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    checker, numbers = load_checker(), random.Random(seed)
    certificates = []
    for path, trace in zip(files[::2], files[1::2], strict=True):
        lines, program = Path(path).read_text().splitlines(), Path(trace).read_text().splitlines()
        checker.check(lines, iter(program))
        certificates.append((path, Certificate(lines, program)))
    refused, accepted = Counter(), []
    for number in range(count):
        path, certificate = certificates[number % len(certificates)]
        what, lines = certificate.corrupted(numbers)
        try:
            checker.check(lines, iter(certificate.program))
            before = [" ".join(words) for words in certificate.lines]
            changed = next((line for line, known in zip(lines, before) if line != known), "the end")
            accepted.append(f"{path}: {what}: accepted with {changed!r}")
        except checker.Refused:
            refused[what] += 1
    print(f"{refused.total()} of {count} refused:", ", ".join(f"{what} {times}" for what, times in sorted(refused.items())))
    if accepted:
        sys.exit("\n".join(accepted[:20]))


if __name__ == "__main__":
    main()
