"""Sends as many bytes as it is asked for, and does nothing else: serve.py PORT.

A request is a number of 64 bits, little-endian; its answer is that many zeros, sent by one call.
What this takes is what the host's loopback costs any server whose answer is as large.
"""

import socket
import struct
import sys
import threading

MOST = 512 << 20


def serve(client):
    with client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        zeros = b""
        while len(request := client.recv(8, socket.MSG_WAITALL)) == 8:
            (count,) = struct.unpack("<Q", request)
            if count > MOST:
                return
            if len(zeros) != count:
                zeros = bytes(count)
            try:
                client.sendall(zeros)
            except OSError:
                return


with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128) as server:
    while True:
        client, _ = server.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()
