"""Stands between the conformance suite and the server: what the suite says on standard input
becomes arguments, and the server's ready line the answer. Takes the server's program."""

import ctypes
import json
import signal
import struct
import subprocess
import sys
import tempfile


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def fields(data):
    """The last value of each field, of a message without groups."""
    at, found = 0, {}

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
            found[key >> 3] = read()
        elif key & 7 == 2:
            length = read()
            found[key >> 3] = data[at : at + length]
            at += length
        else:
            at += 8 if key & 7 == 1 else 4
    return found


(length,) = struct.unpack(">I", sys.stdin.buffer.read(4))
asked = fields(sys.stdin.buffer.read(length))
command = [sys.argv[1], "serve", "--listen", "127.0.0.1:0", "--log", "warn"]
if 6 in asked:
    command += ["--max-message", str(asked[6])]
folder = tempfile.TemporaryDirectory()


def file(name, text):
    path = f"{folder.name}/{name}"
    with open(path, "wb") as out:
        out.write(text)
    return path


certificate = b""
if asked.get(4):
    credentials = fields(asked[7])
    certificate = credentials[1]
    command += ["--tls-cert", file("cert", certificate), "--tls-key", file("key", credentials[2])]
    if 5 in asked:
        command += ["--tls-client-ca", file("clients", asked[5])]
# Whichever way the suite ends this, the server ends, too.
last_wish = lambda: ctypes.CDLL(None).prctl(1, signal.SIGTERM)
server = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=last_wish)
host, port = json.loads(server.stdout.readline())["address"].rsplit(":", 1)
answer = b"\x0a" + varint(len(host)) + host.encode() + b"\x10" + varint(int(port))
if certificate:
    answer += b"\x1a" + varint(len(certificate)) + certificate
sys.stdout.buffer.write(struct.pack(">I", len(answer)) + answer)
sys.stdout.buffer.flush()
signal.signal(signal.SIGTERM, lambda *_: server.terminate())
sys.exit(server.wait())
