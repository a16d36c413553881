#!/usr/bin/env python3
"""Reads slices of conditions, each by a process of its own, and says what came of it in JSON lines.

usage: conditions_jobs.py LOADLINE ADDRESS JOBS TIME BYTES SECONDS

JOBS processes run at a time. Each starts `loadline conditions slice TIME`, which connects, reads,
writes the slice to a file and ends. Of an answer the length is looked at, which has to be BYTES at
least, and not the values, so the lines leave `checked` out: loadline calls these answers unchecked.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time


def jobs(command, path, least, until_ns, said):
    wrong, note, latencies, moved = 0, None, [], 0
    while (begun := time.monotonic_ns()) < until_ns:
        done = subprocess.run([*command, "--out", path], stdout=subprocess.DEVNULL, check=False,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        latencies.append(time.monotonic_ns() - begun)
        read = os.stat(path).st_size if done.returncode == 0 else 0
        moved += read
        if read < least:
            wrong += 1
            note = done.stderr.decode(errors="replace")[-200:] or f"{read} bytes"
        if os.path.exists(path):
            os.unlink(path)
    said.append({"operation": "slice", "operations": len(latencies), "latency_ns": latencies,
                 "bytes": moved, "wrong": wrong, "note": note})


def main():
    loadline, address, count, moment, least = *sys.argv[1:3], *map(int, sys.argv[3:6])
    command = [loadline, "conditions", "slice", str(moment), "--under", "/load/read",
               "--server", address]
    begun = time.monotonic_ns()
    until_ns = begun + int(float(sys.argv[6]) * 1e9)
    print(json.dumps({"t_ns": begun}))
    said = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, str(number)) for number in range(count)]
        threads = [threading.Thread(target=jobs, args=(command, path, least, until_ns, said))
                   for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if len(said) < count:
        sys.exit(f"{count - len(said)} of {count} rows of jobs broke")
    ended = time.monotonic_ns()
    for line in said:
        print(json.dumps({"t_ns": ended, **line}))


main()
