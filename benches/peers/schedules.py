"""A trace of an MPI program, in text, as a GOAL schedule: sends, receives and computations of each rank, and their dependencies.

Messages and computations are those of the trace, one nanosecond per flop (a host of 1 Gflop/s). Broadcasts are binomial trees, reductions to
all are reductions along the same tree and a broadcast, barriers are disseminations.
"""

from collections import deque

# Sizes of datatypes by the numbers that traces use: double, int, byte, uint32.
BYTES = {"0": 8, "1": 4, "6": 1, "23": 4}
DOUBLE = "0"
# Tags of collective operations lie above those of the programs.
COLLECTIVE = 1 << 20


class Unsupported(Exception):
    """An action that has no counterpart here."""


class RankSchedule:
    """The operations of one rank as they are written: each waits for the one before it."""

    def __init__(self, rank, ranks, out):
        self.rank, self.ranks, self.out = rank, ranks, out
        self.count, self.collectives = 0, 0
        self.before = []  # requirements of the next operation
        self.requests = {}  # labels of pending requests by source, destination and tag

    def operation(self, text):
        self.count += 1
        label = f"l{self.count}"
        self.out.write(f"{label}: {text}\n")
        for required in self.before:
            self.out.write(f"{label} {required}\n")
        return label

    def then(self, text):
        self.before = [f"requires {self.operation(text)}"]

    def send(self, to, tag, size):
        self.then(f"send {max(size, 1)}b to {to} tag {tag}")

    def receive(self, source, tag, size):
        self.then(f"recv {max(size, 1)}b from {source} tag {tag}")

    def action(self, words):
        action, fields = words[1], words[2:]
        match action:
            case "init" | "finalize":
                self.end_requests(list(self.requests))
            case "compute":
                self.then(f"calc {round(float(fields[0]))}")
            case "send":
                self.send(fields[0], fields[1], self.size(fields))
            case "recv":
                self.receive(fields[0], fields[1], self.size(fields))
            case "isend":
                label = self.operation(f"send {max(self.size(fields), 1)}b to {fields[0]} tag {fields[1]}")
                self.pend((str(self.rank), fields[0], fields[1]), label)
                self.before = [f"irequires {label}"]
            case "irecv":
                label = self.operation(f"recv {max(self.size(fields), 1)}b from {fields[0]} tag {fields[1]}")
                self.pend((fields[0], str(self.rank), fields[1]), label)
            case "wait":
                self.end_requests([tuple(fields[:3])], most=1)
            case "waitall":
                self.end_requests(list(self.requests))
            case "bcast":
                self.begin_collective()
                self.broadcast(int(fields[1]) if len(fields) > 1 else 0, int(fields[0]) * BYTES[fields[2] if len(fields) > 2 else DOUBLE])
            case "allreduce":
                size = int(fields[0]) * BYTES[fields[2] if len(fields) > 2 else DOUBLE]
                self.begin_collective()
                self.reduce(size)
                self.begin_collective()
                self.broadcast(0, size)
            case "barrier":
                self.begin_collective()
                self.disseminate()
            case _:
                raise Unsupported(f"rank {self.rank}: {action}, expected messages, computations, bcast, allreduce or barrier")

    @staticmethod
    def size(fields):
        return int(fields[2]) * BYTES[fields[3] if len(fields) > 3 else DOUBLE]

    def pend(self, request, label):
        self.requests.setdefault(request, deque()).append(label)

    def end_requests(self, which, most=None):
        """Later operations wait for the oldest `most` requests of each kind, or for all."""
        for request in which:
            labels = self.requests[request]
            for _ in range(most or len(labels)):
                self.before.append(f"requires {labels.popleft()}")
            if not labels:
                del self.requests[request]

    def begin_collective(self):
        self.collectives += 1
        self.tag = COLLECTIVE + self.collectives

    def tree(self, root):
        """The parent of this rank in a binomial tree, and its children, the one with the largest subtree first."""
        place, step = (self.rank - root) % self.ranks, 1
        while step < self.ranks and not place & step:
            step *= 2
        parent = (place - step + root) % self.ranks if place else None
        children = []
        while step > 1:
            step //= 2
            if place + step < self.ranks:
                children.append((place + step + root) % self.ranks)
        return parent, children

    def broadcast(self, root, size):
        parent, children = self.tree(root)
        if parent is not None:
            self.receive(parent, self.tag, size)
        for child in children:
            self.send(child, self.tag, size)

    def reduce(self, size):
        parent, children = self.tree(0)
        for child in reversed(children):
            self.receive(child, self.tag, size)
        if parent is not None:
            self.send(parent, self.tag, size)

    def disseminate(self):
        step = 1
        while step < self.ranks:
            self.send((self.rank + step) % self.ranks, self.tag, 1)
            self.receive((self.rank - step) % self.ranks, self.tag, 1)
            step *= 2


def write_schedule(directory, ranks, path):
    """Writes the schedule of rank-0.txt, rank-1.txt, ... of a directory as GOAL text."""
    with open(path, "w") as out:
        out.write(f"num_ranks {ranks}\n")
        for rank in range(ranks):
            out.write(f"rank {rank} {{\n")
            schedule = RankSchedule(rank, ranks, out)
            with open(directory / f"rank-{rank}.txt") as trace:
                for line in trace:
                    schedule.action(line.split())
            out.write("}\n")
