"""What a server's garbage collector has taken, as a page of Prometheus text.

A server in Python calls `of_this_process`. Of one in Go, started with GODEBUG=gctrace=1, this program
reads what it prints to its standard error, a line a collection: collected.py FILE HOST:PORT. It goes on in
the background once it can be asked.
"""

import gc
import http.server
import os
import re
import sys
import threading
import time

# The times of a line in milliseconds of CPU: of the stop before, of assistants, of workers, of those
# that had nothing else to do, and of the stop behind.
GO = re.compile(r"^gc \d+ .* ms clock, ([0-9.+/]+) ms cpu", re.MULTILINE)


class Collected:
    """How often garbage was collected, and the CPU time that this took."""

    def __init__(self):
        self.collections = 0
        self.cpu_ns = 0
        self.begun = 0

    def noted(self, phase, _):
        # A collection is done by one thread from its start to its end.
        now = time.thread_time_ns()
        if phase == "start":
            self.begun = now
        else:
            self.collections += 1
            self.cpu_ns += now - self.begun


def of_go(text):
    """What the lines of a server in Go add up to."""
    collected = Collected()
    for times in GO.findall(text):
        collected.collections += 1
        collected.cpu_ns += round(sum(map(float, re.split("[+/]", times))) * 1e6)
    return collected


def page_at(address, read):
    """Returns what answers each request at HOST:PORT with what `read` returns then."""

    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            now = read()
            page = (
                f"# TYPE gc_collections_total counter\ngc_collections_total {now.collections}\n"
                f"# TYPE gc_cpu_ns_total counter\ngc_cpu_ns_total {now.cpu_ns}\n"
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    host, port = address.rsplit(":", 1)
    server = http.server.ThreadingHTTPServer((host, int(port)), Page)
    server.daemon_threads = True
    return server


def of_this_process(address):
    """Counts the collections of this process from now on, and has the page served."""
    collected = Collected()
    gc.callbacks.append(collected.noted)
    page = page_at(address, lambda: collected)
    threading.Thread(target=page.serve_forever, daemon=True).start()


def main():
    path, address = sys.argv[1:]

    def read():
        with open(path, encoding="utf-8", errors="replace") as file:
            return of_go(file.read())

    page = page_at(address, read)
    if os.fork() == 0:
        page.serve_forever()


if __name__ == "__main__":
    main()
