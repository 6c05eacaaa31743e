"""Tests of the module, and of the notebook in docs/."""

import json
import tempfile
import unittest
from pathlib import Path

import pdes_replay

ROOT = Path(__file__).resolve().parents[2]
# 1 ms of computation, two links of 1 us each, 984 and 16 bytes at 1 GB/s.
TRACE = "0 init\n1 init\n0 compute 1e6\n0 send 1 0 984\n1 recv 0 0 984\n"
TOPOLOGY = {"kind": "cluster", "hosts": 2, "speed": "1Gf", "bandwidth": "1GBps", "latency": "1us"}


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
        self.assertIn("<title>trace.txt on inline</title>", path.read_text())
        saved = Path(self.folder.name) / "run.json"
        saved.write_text(json.dumps(report))
        self.assertEqual(pdes_replay.read(saved), report)
        other = pdes_replay.page(report, Path(self.folder.name) / "difference.html", saved)
        self.assertIn("twice", other.read_text())


class Notebook(unittest.TestCase):
    def test_the_notebook_runs(self):
        import nbclient
        import nbformat

        notebook = nbformat.read(ROOT / "docs/python.ipynb", as_version=4)
        nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": ROOT / "docs"}}).execute()
        outputs = [str(cell.get("outputs")) for cell in notebook.cells if cell.cell_type == "code"]
        self.assertIn("0.0038029", outputs[0])
        self.assertIn("late_sender_s", outputs[1])


if __name__ == "__main__":
    unittest.main()
