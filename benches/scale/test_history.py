"""Tests of the history: python3 -m unittest discover benches/scale."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import history


def row(rate, digest="d", **fields):
    return {"name": "halo", "parameters": "p", "machine": "m", "commit": "c", "rate": rate, "digest": digest} | fields


class Judging(unittest.TestCase):
    def test_the_first_run_is_never_worse(self):
        self.assertEqual(history.judge([], row(1.0)), [])

    def test_a_rate_may_fall_by_a_fifth_of_the_median(self):
        rows = [row(rate) for rate in (100.0, 300.0, 110.0, 90.0, 100.0)]
        self.assertEqual(history.judge(rows, row(80.0)), [])
        [(fails, sentence)] = history.judge(rows, row(79.0))
        self.assertTrue(fails)
        self.assertIn("halo", sentence)
        self.assertIn("21%", sentence)

    def test_only_the_last_runs_count(self):
        rows = [row(1000.0)] * 20 + [row(10.0)] * history.LAST
        self.assertEqual(history.judge(rows, row(9.0)), [])
        self.assertEqual(len(history.judge(rows[:-4], row(9.0))), 1)

    def test_other_rows_and_machines_and_parameters_do_not_count(self):
        rows = [row(100.0, name="lu"), row(100.0, machine="n"), row(100.0, parameters="q")]
        self.assertEqual(history.judge(rows, row(1.0)), [])

    def test_another_digest_is_told_and_does_not_fail(self):
        rows = [row(100.0, "old"), row(100.0, "new", machine="n")]
        self.assertEqual(history.judge(rows, row(100.0, "new")), [])
        [(fails, sentence)] = history.judge(rows, row(100.0, "newer"))
        self.assertFalse(fails)
        self.assertIn("newer", sentence)
        self.assertEqual(history.judge(rows, row(100.0, "newer", parameters="q")), [])


class File(unittest.TestCase):
    def test_rows_come_back_in_their_order(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "new" / "history.jsonl"
            self.assertEqual(history.read(path), [])
            for rate in (1.0, 2.0):
                history.append(path, row(rate))
            self.assertEqual(history.read(path), [row(1.0), row(2.0)])

    def test_a_line_that_is_none_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "history.jsonl"
            path.write_text('{"name": "halo"}\nhalf a li')
            with self.assertRaisesRegex(ValueError, "history.jsonl:2"):
                history.read(path)


if __name__ == "__main__":
    unittest.main()
