"""Writes table.tsv: the change points that apache-otava and asv find in two hundred generated series.

    cargo xtask oracles --write          # without --write it is compared with the table

A case is its number: both sides draw the same series from SplitMix64 with that seed, so the table
holds results only. tests/otava.rs is the other side.
"""

import importlib.util
import os

from asv.step_detect import detect_steps
from otava.analysis import compute_change_points

SCIPY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scipy", "make.py")
SPEC = importlib.util.spec_from_file_location("scipy_make", SCIPY)
SCIPY_MAKE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SCIPY_MAKE)


def series(case):
    random = SCIPY_MAKE.Random(case)
    level, figures = 100.0, []
    for _ in range(1 + random.below(4)):
        for _ in range(8 + random.below(25)):
            figures.append(level + random.normal())
        step = 5.0 + 5.0 * random.uniform()
        level += step if random.below(2) == 0 else -step
    return figures


def main():
    print("case\totava\tasv")
    for case in range(200):
        figures = series(case)
        found, _ = compute_change_points(figures, window_len=50, max_pvalue=0.001)
        otava = ",".join(str(int(point.index)) for point in found)
        steps = detect_steps(figures, [1.0] * len(figures))
        asv = ",".join(str(int(start)) for start, *_ in steps[1:])
        print(f"{case}\t{otava}\t{asv}")


if __name__ == "__main__":
    main()
