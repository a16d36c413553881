"""Eight bytes there and back through Python's multiprocessing.Pipe: MS CPUS, where CPUS is ONE,OTHER or any."""

import json
import multiprocessing
import os
import struct
import sys
import time


def pin(cpu):
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


def echo(pipe, cpu):
    pin(cpu)
    while True:
        message = pipe.recv_bytes()
        if not message:
            return
        pipe.send_bytes(message)


def main():
    seconds = int(sys.argv[1]) / 1000
    cpus = [None, None] if sys.argv[2] == "any" else [int(cpu) for cpu in sys.argv[2].split(",")]
    near, far = multiprocessing.Pipe()
    child = multiprocessing.Process(target=echo, args=(far, cpus[1]))
    child.start()
    pin(cpus[0])
    samples = []
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds or not samples:
        message = struct.pack("<q", len(samples))
        start = time.perf_counter_ns()
        near.send_bytes(message)
        answer = near.recv_bytes()
        samples.append(time.perf_counter_ns() - start)
        if answer != message:
            sys.exit("a wrong answer")
    near.send_bytes(b"")
    child.join()
    samples.sort()
    at = lambda share: samples[int(share * (len(samples) - 1))]
    print(json.dumps({"samples": len(samples), "median_ns": at(0.5), "p99_ns": at(0.99)}))


if __name__ == "__main__":
    main()
