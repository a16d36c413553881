#!/usr/bin/env python3
"""Gets keys from a memcached server with plain sockets, and says what came of it in JSON lines.

usage: get.py HOST PORT CONNECTIONS KEYS VALUE_BYTES SECONDS

Each connection has a thread that asks for one key at a time. The keys are those that loadline has
written: `k` and decimal digits. Of an answer the key and the length are looked at, not the bytes of
the value, so the lines leave `checked` out: loadline calls these answers unchecked.
"""

import json
import random
import socket
import sys
import threading
import time


def load(host, port, keys, value_bytes, until_ns, said):
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answers = connection.makefile("rb")
    digits = len(str(keys - 1))
    wrong, note, latencies = 0, None, []
    while (sent := time.monotonic_ns()) < until_ns:
        key = b"k%0*d" % (digits, random.randrange(keys))
        connection.sendall(b"get " + key + b"\r\n")
        head = answers.readline()
        if head == b"VALUE %s 0 %d\r\n" % (key, value_bytes):
            answers.read(value_bytes + 2)
            answers.readline()
        else:
            wrong, note = wrong + 1, repr(head)
            if not head:
                raise SystemExit("the server closed the connection")
        latencies.append(time.monotonic_ns() - sent)
    said.append({"operation": "get", "operations": len(latencies), "latency_ns": latencies,
                 "bytes": len(latencies) * value_bytes, "wrong": wrong, "note": note})


def main():
    host, port, connections, keys, value_bytes = sys.argv[1], *map(int, sys.argv[2:6])
    begun = time.monotonic_ns()
    until_ns = begun + int(float(sys.argv[6]) * 1e9)
    print(json.dumps({"t_ns": begun}))
    said = []
    arguments = (host, port, keys, value_bytes, until_ns, said)
    threads = [threading.Thread(target=load, args=arguments) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(said) < connections:
        sys.exit(f"{connections - len(said)} of {connections} connections broke")
    ended = time.monotonic_ns()
    for line in said:
        print(json.dumps({"t_ns": ended, **line}))


main()
