"""Tests of the module, and of the notebook in docs/."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pdes_replay

ROOT = Path(__file__).resolve().parents[2]
# 1 ms of computation, two links of 1 us each, 984 and 16 bytes at 1 GB/s.
TRACE = "0 init\n1 init\n0 compute 1e6\n0 send 1 0 984\n1 recv 0 0 984\n"
TOPOLOGY = {"kind": "cluster", "hosts": 2, "speed": "1Gf", "bandwidth": "1GBps", "latency": "1us"}


MODELS = [{"network.model": "contention-free"}, {}, {"network.epoch_s": "auto"}]
# Ping-pongs of 1 us and 1.6 GB/s.
LATENCIES = "# OSU MPI Latency Test v7.2\n# Size  Avg Latency(us)\n0 1.00\n16 1.01\n256 1.16\n1024 1.64\n4096 3.56\n65536 41.96\n262144 164.84\n"


class Module(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = Path(self.folder.name) / "trace.txt"
        self.trace.write_text(TRACE)
        self.config = {"trace": {"path": self.trace}, "platform": {"topology": TOPOLOGY}, "network": {"preset": "raw"}}

    def test_runs_are_dicts(self):
        report = pdes_replay.run(self.config)
        self.assertEqual(report["simulated_time_ps"], 1_003_000_000)
        slow = pdes_replay.run(self.config, {"network.latency_scale": 1000, "network.model": "contention-free"})
        self.assertEqual(slow["simulated_time_ps"], 3_001_000_000)
        jobs = [{"trace": self.trace}, {"trace": self.trace, "start": "2ms"}]
        machine = {"topology": {**TOPOLOGY, "hosts": 4}}
        both = pdes_replay.run({"job": jobs, "platform": machine, "network": {"preset": "raw"}})
        self.assertEqual(both["simulated_time_ps"], 3_003_000_000)

    def test_tables_are_frames(self):
        report = pdes_replay.run(self.config, {"analysis.matrix": True})
        ranks = pdes_replay.ranks(report)
        self.assertAlmostEqual(ranks.late_sender_s[1], 1e-3)
        parts = ranks.drop(columns="end_s").sum(axis=1)
        self.assertTrue(((parts - ranks.end_s).abs() < 1e-12).all())
        calls = pdes_replay.calls(report).set_index("action")
        self.assertEqual(calls["count"]["recv"], 1)
        self.assertEqual(pdes_replay.matrix(report)[1][0], 984)
        self.assertAlmostEqual(pdes_replay.matrix(report, "transfer_s")[1][0], 3e-6)
        self.assertEqual(pdes_replay.links(report).bytes.max(), 1000)
        with self.assertRaisesRegex(ValueError, "analysis.matrix"):
            pdes_replay.matrix(pdes_replay.run(self.config))

    def test_errors_say_what_is_wrong(self):
        with self.assertRaisesRegex(ValueError, "did you mean \"flow\""):
            pdes_replay.run(self.config, {"network.model": "flaw"})
        self.trace.write_text("0 init\n1 init\n1 recv 0 0 984\n")
        with self.assertRaisesRegex(pdes_replay.ReplayError, "deadlock|receive"):
            pdes_replay.run(self.config)

    def test_sweeps_are_frames(self):
        found = pdes_replay.sweep(ROOT / "configs/machines.toml", Path(self.folder.name) / "sweep", at_once=2)
        self.assertEqual(list(found.columns[:3]), ["machine", "network.latency_scale", "cost"])
        self.assertEqual(len(found), 6)
        self.assertTrue(found.error.isna().all())
        torus = found[found.machine == "torus"].set_index("network.latency_scale")
        self.assertGreater(torus.simulated_time_s[2], torus.simulated_time_s[1])

    def test_pages_are_files(self):
        report = pdes_replay.run(self.config)
        path = pdes_replay.page(report, Path(self.folder.name) / "page.html")
        self.assertIn("<title>trace.txt on inline (flow, preset raw)</title>", path.read_text())
        saved = Path(self.folder.name) / "run.json"
        saved.write_text(json.dumps(report))
        self.assertEqual(pdes_replay.read(saved), report)
        other = pdes_replay.page(report, Path(self.folder.name) / "difference.html", saved)
        self.assertIn("twice", other.read_text())


    def test_diagnoses_have_problems(self):
        diagnosis = pdes_replay.diagnose(self.config, {"network.model": "contention-free"}, gain=True)
        self.assertEqual((diagnosis["ranks"], diagnosis["simulated_time_s"]), (2, 0.001003))
        found = pdes_replay.problems(diagnosis).set_index("name")
        # Rank 1 waits 1 ms of the 2.006 ms of both.
        self.assertAlmostEqual(found.share["late sender"], 1000 / 2006, places=2)
        self.assertTrue(found.recommendation["late sender"])
        with self.assertRaisesRegex(ValueError, "no measured times"):
            pdes_replay.diagnose({"trace": {"path": self.trace}})

    def test_hypotheses_are_rows(self):
        self.trace.write_text("0 init\n1 init\n0 compute 3e6\n1 compute 1e6\n")
        hypotheses = {"even": {"transform": [{"kind": "balance"}]}, "twice": {"transform": [{"kind": "scale", "factor": 2}]}}
        found = pdes_replay.what_if(self.config, hypotheses, output=Path(self.folder.name) / "what-if").set_index("name")
        self.assertEqual(list(found.simulated_time_s), [0.003, 0.002, 0.006])
        self.assertAlmostEqual(found.change["even"], -1 / 3)
        self.assertTrue((Path(self.folder.name) / "what-if/what-if.html").exists())
        file = Path(self.folder.name) / "hypotheses.toml"
        file.write_text("[[hypothesis]]\nname = 'even'\ntransform = [{ kind = 'balance' }]\n")
        self.assertEqual(pdes_replay.what_if(self.config, file).simulated_time_s[1], 0.002)
        with self.assertRaisesRegex(ValueError, "balanse"):
            pdes_replay.what_if(self.config, {"even": {"transform": [{"kind": "balanse"}]}})

    def test_machines_are_fitted(self):
        measurements = Path(self.folder.name) / "latency.txt"
        measurements.write_text(LATENCIES)
        file = Path(self.folder.name) / "machine.toml"
        machine = pdes_replay.calibrate(measurements, speed=1e9, output=file)
        self.assertAlmostEqual(float(machine["platform"]["topology"]["bandwidth"].removesuffix("Bps")), 1.6e9, delta=1e7)
        report = pdes_replay.run({**machine, "trace": {"path": self.trace}})
        self.assertEqual(pdes_replay.run(file, {"trace.path": self.trace})["digest"], report["digest"])
        with self.assertRaisesRegex(ValueError, "quantile: found 2"):
            pdes_replay.calibrate(measurements, quantile=2)
        with self.assertRaises(pdes_replay.ReplayError):
            pdes_replay.calibrate(self.trace)

    def test_platforms_are_built(self):
        machine = pdes_replay.Platform()
        leaf, spine = machine.switch("leaf"), machine.switch("spine")
        for number, switch in enumerate([leaf, spine, spine]):
            machine.cable(machine.host(f"node-{number}", "1Gf"), switch, "1GBps", "1us")
        expected = pdes_replay.run(self.config)["simulated_time_ps"]
        trunk = machine.cable(leaf, spine, "1GBps", "1us")
        config = {**self.config, "platform": machine}
        # A third link of 1 us.
        self.assertEqual(pdes_replay.run(config)["simulated_time_ps"], expected + 1_000_000)
        packets = pdes_replay.run({**config, "network": {"model": "packets"}})
        self.assertGreater(packets["simulated_time_ps"], expected)
        machine.route("node-0", "node-1", [machine.link("wire", 2e9, 5e-6, "fat_pipe")])
        # 5 us in place of 2 us, and 1000 B take half as long.
        self.assertEqual(pdes_replay.run(config)["simulated_time_ps"], expected + 2_500_000)
        with self.assertRaisesRegex(ValueError, "a cable ends at 'node-9'"):
            machine.cable("node-9", leaf, "1GBps")
        with self.assertRaisesRegex(ValueError, f"the link '{trunk}' exists"):
            machine.cable(leaf, spine, "1GBps")
        with self.assertRaisesRegex(ValueError, "'leaf' exists"):
            machine.host("leaf", "1Gf")


def all_calls(mpi):
    """Every call; raises an exception where one returns something else than expected."""
    size, after, before = mpi.size, (mpi.rank + 1) % mpi.size, (mpi.rank - 1) % mpi.size
    yield mpi.compute(1e6 * mpi.rank)
    start = mpi.time
    yield mpi.sleep(1e-3)
    assert abs(mpi.time - start - 1e-3) < 1e-12
    received = yield mpi.ireceive(before, 7, 70_000)
    sent = yield mpi.isend(after, 7, 70_000, [mpi.rank])
    assert (yield mpi.wait(received)).value == [before]
    assert (yield mpi.wait(sent)) is None
    requests = []
    for peer in (before, after):
        requests.append((yield mpi.ireceive(peer, peer, 8)))
    for peer in (before, after):
        requests.append((yield mpi.isend(peer, mpi.rank, 8, str(mpi.rank))))
    messages = yield mpi.wait_all(requests)
    assert [message and message.value for message in messages] == [str(before), str(after), None, None]
    assert (yield mpi.all_reduce(8, mpi.rank, flops=1e3)) == list(range(size))
    assert (yield mpi.broadcast(1, 80, "root" if mpi.rank == 1 else None)) == "root"
    assert (yield mpi.all_gather(4)) == [None] * size
    part = yield mpi.split(mpi.rank % 2 if mpi.rank < 4 else None, -mpi.rank)
    assert (part is None) == (mpi.rank >= 4)
    if part:
        assert (part.size, part.rank) == (2, 1 - mpi.rank // 2)
        yield part.barrier()
    yield mpi.barrier()
    if mpi.rank == 0:
        assert (yield mpi.try_probe()) is None
        requests = []
        for peer in (2, 1):
            requests.append((yield mpi.ireceive(peer, None, 8)))
        late = requests[0]
        index, message = yield mpi.wait_any(requests)
        assert (index, message.source, requests) == (1, 1, [late])
        assert (yield mpi.test(late)) == (False, None)
        message = yield mpi.wait(late)
        assert (message.source, message.tag, message.bytes, message.value) == (2, 5, 8, None)
    elif mpi.rank == 1:
        yield mpi.compute(1e6)
        yield mpi.send(0, 3, 8)
        message = yield mpi.probe(2)
        assert (message.tag, message.value) == (9, None)
        assert (yield mpi.receive(None, None, 100)).value == "late"
    elif mpi.rank == 2:
        yield mpi.compute(1e7)
        yield mpi.send(0, 5, 8)
        yield mpi.synchronous_send(1, 9, 100, "late")


class Programs(unittest.TestCase):
    config = {"platform": {"topology": {**TOPOLOGY, "hosts": 5}}, "network": {"preset": "raw"}}

    def test_ranks_are_generators(self):
        seen = []

        def ring(mpi):
            if mpi.rank == 0:
                yield mpi.compute(1e6)
                yield mpi.send(1, 5, 984, {"answer": 42})
            else:
                message = yield mpi.receive(None, None, 1000)
                seen.append((message.source, message.tag, message.bytes, message.value, mpi.time))

        report = pdes_replay.simulate(ring, 2, self.config, {"analysis.matrix": True})
        self.assertEqual(report["simulated_time_ps"], 1_003_000_000)
        self.assertEqual(seen, [(0, 5, 984, {"answer": 42}, 0.001003)])
        self.assertEqual(report["parameters"]["trace"], "ring")
        self.assertEqual(pdes_replay.matrix(report)[1][0], 984)

    def test_all_calls_are_the_same_on_threads(self):
        for model in MODELS:
            digests = set()
            for threads in (1, 3):
                settings = {**model, "engine.threads": threads, "parallel.oversubscribe": True}
                digests.add(pdes_replay.simulate(all_calls, 5, self.config, settings)["digest"])
            self.assertEqual(len(digests), 1, model)

    def test_exceptions_name_their_rank(self):
        def failing(mpi):
            yield mpi.barrier()
            if mpi.rank == 1:
                raise KeyError("no such cell")
            yield mpi.barrier()

        for model in MODELS:
            with self.assertRaisesRegex(pdes_replay.ReplayError, "failing: rank 1: KeyError: 'no such cell'") as raised:
                pdes_replay.simulate(failing, 3, self.config, model)
            self.assertIsInstance(raised.exception.__cause__, KeyError)

        def interrupted(mpi):
            yield mpi.barrier()
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            pdes_replay.simulate(interrupted, 1, self.config)

    def test_mistakes_are_named(self):
        def forgets(mpi):
            mpi.send(1 - mpi.rank, 0, 8)
            yield mpi.barrier()

        def yields_a_number(mpi):
            yield 5

        def yields_twice(mpi):
            barrier = mpi.barrier()
            yield barrier
            yield barrier

        def waits_twice(mpi):
            request = yield mpi.isend(mpi.rank, 0, 8)
            yield mpi.receive(mpi.rank, 0, 8)
            yield mpi.wait(request)
            yield mpi.wait(request)

        def sends_to_nobody(mpi):
            yield mpi.send(2, 0, 8)

        def waits_for_nobody(mpi):
            yield mpi.receive(1 - mpi.rank, 0, 8)

        mistakes = {
            forgets: r"mpi.send\(\) is never yielded",
            yields_a_number: "rank 0: TypeError: a rank yields 5, expected a call",
            yields_twice: r"mpi.barrier\(\) is yielded twice",
            waits_twice: "the request is complete",
            sends_to_nobody: "rank 0, action 0: send: a peer is rank 2, expected one below 2",
            waits_for_nobody: "waits in action 0 for a message from rank 1",
            lambda mpi: None: "found NoneType, expected a generator",
        }
        for function, message in mistakes.items():
            with self.assertRaisesRegex(pdes_replay.ReplayError, message):
                pdes_replay.simulate(function, 2, self.config)
        with self.assertRaisesRegex(ValueError, "trace.path"):
            pdes_replay.simulate(all_calls, 5, {**self.config, "trace": {"path": "lu.pdt"}})
        with self.assertRaisesRegex(ValueError, "ranks: found 0"):
            pdes_replay.simulate(all_calls, 0, self.config)


class Types(unittest.TestCase):
    def run_tool(self, *arguments):
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run([sys.executable, "-m", *arguments], cwd=scratch, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_annotations_are_consistent(self):
        package = str(Path(pdes_replay.__file__).parent)
        # pandas and IPython have no types of their own.
        codes = ["import-not-found", "import-untyped", "no-untyped-call"]
        self.run_tool("mypy", "--strict", *(f"--disable-error-code={code}" for code in codes), package)

    def test_stubs_are_those_of_the_module(self):
        self.run_tool("mypy.stubtest", "pdes_replay._native")


class Documentation(unittest.TestCase):
    def test_the_examples_run(self):
        text = (ROOT / "docs/python.md").read_text()
        examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        found = {}
        for example in examples:
            exec(example.replace('"configs/', f'"{ROOT}/configs/'), found)
        self.assertEqual((len(examples), found["report"]["ranks"]), (3, 32))

    def test_the_notebook_runs(self):
        import nbclient
        import nbformat

        notebook = nbformat.read(ROOT / "docs/python.ipynb", as_version=4)
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": ROOT / "docs"}}).execute()
        outputs = [str(cell.get("outputs")) for cell in notebook.cells if cell.cell_type == "code"]
        self.assertIn("0.00114119", outputs[0])
        self.assertIn("late_sender_s", outputs[1])


if __name__ == "__main__":
    unittest.main()
