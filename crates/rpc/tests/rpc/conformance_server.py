"""Stands between the conformance suite and the server: what the suite says on standard input
becomes arguments, and the server's ready line the answer. Takes the server's program."""

import ctypes
import json
import signal
import struct
import subprocess
import sys


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def number(data, wanted):
    """The last number of a field, of a message without groups."""
    at, found = 0, 0

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = read()
        if key & 7 == 0:
            value = read()
            found = value if key >> 3 == wanted else found
        elif key & 7 == 2:
            length = read()
            at += length
        else:
            at += 8 if key & 7 == 1 else 4
    return found


(length,) = struct.unpack(">I", sys.stdin.buffer.read(4))
most = number(sys.stdin.buffer.read(length), 6)
command = [sys.argv[1], "serve", "--listen", "127.0.0.1:0", "--log", "warn"]
command += ["--max-message", str(most)] if most else []
# Whichever way the suite ends this, the server ends, too.
last_wish = lambda: ctypes.CDLL(None).prctl(1, signal.SIGTERM)
server = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=last_wish)
host, port = json.loads(server.stdout.readline())["address"].rsplit(":", 1)
answer = b"\x0a" + varint(len(host)) + host.encode() + b"\x10" + varint(int(port))
sys.stdout.buffer.write(struct.pack(">I", len(answer)) + answer)
sys.stdout.buffer.flush()
signal.signal(signal.SIGTERM, lambda *_: server.terminate())
sys.exit(server.wait())
