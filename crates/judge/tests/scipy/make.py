"""Writes table.tsv: what scipy says of a thousand generated pairs of samples.

    cargo xtask oracles --write          # without --write it is compared with the table

A case is its number: both sides draw the same samples from SplitMix64 with that seed, so the table
holds results only. tests/scipy.rs is the other side.
"""

import math

import numpy as np
from scipy import stats

MASK = (1 << 64) - 1


class Random:
    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = ((self.state ^ (self.state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def uniform(self):
        return (self.bits() >> 11) / (1 << 53)

    def below(self, limit):
        return (self.bits() * limit) >> 64

    def normal(self):
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())


def sample(random, shift, ties):
    count = 3 + random.below(18)
    values = [math.exp(0.1 * random.normal() + shift) for _ in range(count)]
    return [math.floor(value * 20.0 + 0.5) for value in values] if ties else values


def main():
    print("case\twelch_p\tpaired_p\twelch_low\twelch_high")
    for case in range(1000):
        random = Random(case)
        ties = case % 4 == 3
        shift = 0.05 * random.below(4)
        a, b = sample(random, shift, ties), sample(random, 0.0, ties)
        welch = stats.ttest_ind(np.log(a), np.log(b), equal_var=False)
        interval = welch.confidence_interval(0.95)
        both = min(len(a), len(b))
        paired = stats.ttest_rel(np.log(a[:both]), np.log(b[:both])).pvalue
        print(
            f"{case}\t{welch.pvalue:.12e}\t{paired:.12e}"
            f"\t{interval.low:.12e}\t{interval.high:.12e}"
        )


if __name__ == "__main__":
    main()
