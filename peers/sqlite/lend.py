"""Lends a folder to clients that bring SQLite along: lend.py FOLDER PORT.

SQLite has no server: whoever connects to the loopback port gets the folder's path, and opens the
database in it. What reads and writes is the client's process, and its CPU time.
"""

import os
import socket
import sys

folder, port = os.path.abspath(sys.argv[1]), int(sys.argv[2])
os.makedirs(folder, exist_ok=True)
with socket.create_server(("127.0.0.1", port), backlog=128) as server:
    while True:
        client, _ = server.accept()
        with client:
            try:
                client.sendall(os.fsencode(folder) + b"\n")
            except OSError:
                pass  # The lab connects and leaves to see whether it listens.
