#!/usr/bin/env python3
"""Encodes or decodes messages of Python's codecs, compares every one, and prints what it took.

usage: codecs.py upb|pickle|msgpack encode|decode COUNT SECONDS [messages|doubles]

It prints the lines of a client program (docs/programs.md).

The message is that of `suites/rpc-codecs.toml`, as many small messages within one, or of
`suites/rpc-codecs-arrays.toml`, as many numbers with a fraction.
"""

import gc
import json
import os
import pickle
import resource
import sys
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# The field that has them.
FIELDS = {"messages": "samples", "doubles": "reals"}


def small(at):
    return {
        "number": at * 1_000_003 + 1,
        "text": f"{at:017}",
        "real": at / 1024,
        "flag": True,
        "small": at % 100 + 1,
    }


def upb(kind, values):
    sys.path.insert(0, os.path.join(ROOT, "crates", "rpc", "proto"))
    import grpc
    from google.protobuf.internal import api_implementation

    assert api_implementation.Type() == "upb", api_implementation.Type()
    table = grpc.protos("loadline/rpc/v1/table.proto")
    sample = table.Sample(**{FIELDS[kind]: values})
    return sample, table.Sample.SerializeToString, table.Sample.FromString


def pickled(kind, values):
    return {FIELDS[kind]: values}, lambda value: pickle.dumps(value, 5), pickle.loads


def packed(kind, values):
    import msgpack

    return {FIELDS[kind]: values}, msgpack.packb, msgpack.unpackb


def collections():
    """How long the garbage collector has worked from now on, in a list of one number of ns."""
    begun, took = 0, [0]

    def noted(phase, _):
        nonlocal begun
        now = time.perf_counter_ns()
        if phase == "start":
            begun = now
        else:
            took[0] += now - begun

    gc.callbacks.append(noted)
    return took


def cpu_ns():
    """The CPU time of this thread, in user mode and in the kernel."""
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return round(used.ru_utime * 1e9), round(used.ru_stime * 1e9)


def main():
    codec, operation, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seconds = float(sys.argv[4])
    kind = sys.argv[5] if len(sys.argv) > 5 else "messages"
    one = {"messages": small, "doubles": lambda at: at / 1024 + 1}[kind]
    make = {"upb": upb, "pickle": pickled, "msgpack": packed}[codec]
    value, encode, decode = make(kind, [one(at) for at in range(count)])
    data = encode(value)
    call, argument = (encode, value) if operation == "encode" else (decode, data)

    def check():
        result = call(argument)
        if (decode(result) if operation == "encode" else result) != value:
            sys.exit(f"{codec} {operation} of {count} {kind}: another message came back")

    check()
    # As many calls as take 25 µs are a sample, so that the clock's own time is small.
    calls, took = 1, 0
    while True:
        begun = time.perf_counter_ns()
        for _ in range(calls):
            call(argument)
        took = time.perf_counter_ns() - begun
        if took >= 25_000:
            break
        calls *= 2
    samples = []
    print(json.dumps({"t_ns": time.monotonic_ns()}))
    used = cpu_ns()
    collected, start = collections(), time.perf_counter_ns()
    until = start + seconds * 1e9
    while time.perf_counter_ns() < until or not samples:
        begun = time.perf_counter_ns()
        for _ in range(calls):
            call(argument)
        samples.append((time.perf_counter_ns() - begun) / calls)
    share = collected[0] / (time.perf_counter_ns() - start)
    ended = time.monotonic_ns()
    user_ns, system_ns = (now - before for now, before in zip(cpu_ns(), used))
    # Another time: the first may have used up what it read.
    check()
    samples.sort()
    line = {
        "t_ns": ended,
        "operations": len(samples) * calls,
        "checked": True,
        "bytes": len(samples) * calls * len(data),
        "latency_counts": [[round(each_ns), 1] for each_ns in samples],
        "user_ns": user_ns,
        "system_ns": system_ns,
        "figures": {
            "time_ns": samples[len(samples) // 2],
            "samples": len(samples),
            "bytes_per_op": len(data),
            "gc_share": share,
        },
    }
    print(json.dumps(line))


main()
