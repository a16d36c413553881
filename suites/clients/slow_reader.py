"""Clients of gRPC that ask for 100 messages of 1 MB and read none of them: ADDRESS READERS SECONDS.

HTTP/2 by hand, as the client must not read ahead: header fields go into no table, and windows are as large as they may be.
"""

import socket
import struct
import sys
import time

PATH = b"/grpc.testing.TestService/StreamingOutputCall"
RECEIVED = 64 << 10


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request():
    # response_parameters, each with a size of 1,000,000.
    message = bytes.fromhex("1204 08c0843d") * 100
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", PATH),
        (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ]
    most = 2**31 - 1
    return b"".join([
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        frame(4, 0, 0, struct.pack(">HI", 4, most)),
        frame(8, 0, 0, struct.pack(">I", most - 65_535)),
        frame(1, 4, 1, b"".join(field(*one) for one in fields)),
        frame(0, 1, 1, b"\0" + struct.pack(">I", len(message)) + message),
    ])


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    until = time.monotonic() + float(sys.argv[3])
    readers = []
    for _ in range(int(sys.argv[2])):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        reader.connect((host, int(port)))
        reader.sendall(request())
        readers.append(reader)
    time.sleep(max(0, until - time.monotonic()))


if __name__ == "__main__":
    main()
