"""The four programs of arrays at once: a server that makes arrays and monitors them itself, and
three clients of it, which monitor, get and put. Prints the rate of each, as NAME=RATE.

array_programs.py loadline|pvxs ELEMENTS SECONDS
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time

PRODUCED, PUT = "arrayPerformance", "arrayPut"
CLIENTS = ["monitor", "get", "put"]


class Program:
    """A program whose lines are kept as they come."""

    def __init__(self, command):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.lines, self.changed = [], threading.Condition()
        self.process = subprocess.Popen(command, text=True, **pipes)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify()
        with self.changed:
            self.changed.notify()

    def address(self):
        """The address in its ready line."""
        with self.changed:
            while self.reader.is_alive():
                for line in self.lines:
                    if '"ready":true' in line:
                        return json.loads(line)["address"]
                self.changed.wait(0.1)
        sys.exit("the server has ended: " + "".join(self.lines))

    def stop(self):
        self.process.terminate()

    def objects(self):
        """Its lines of JSON, once it has ended."""
        self.process.wait()
        self.reader.join()
        return [json.loads(line) for line in self.lines if line.startswith("{")]


def rate(reports, what):
    """What a program of ours counted, over the seconds of all its reports."""
    found = [report for report in reports if what in report]
    seconds = sum(report["seconds"] for report in found)
    return sum(report[what] for report in found) / seconds if seconds else 0


def loadline(size, seconds, folder):
    exe = os.environ.get("LOADLINE", "target/release/loadline")
    config = os.path.join(folder, "records.toml")
    with open(config, "w") as file:
        file.write(f'[[record]]\nname = "{PUT}"\ntype = "long[]"\n')
    source = ["--producer", "array", "--name", PRODUCED, "--size", size, "--monitors", "1"]
    options = ["--listen", "127.0.0.1:0", "--no-search", "--log-json", "--config", config]
    server = Program([exe, "serve", "records", *options, *source, "--provider", "local"])
    client = [exe, "records", "--server", server.address(), "--json", "--check"]
    arguments = {
        "monitor": ["monitor", PRODUCED],
        "get": ["get", PRODUCED, "--repeat", "--delay", "0"],
        "put": ["put", PUT, "--size", size, "--delay", "0"],
    }
    clients = [Program([*client, *arguments[name]]) for name in CLIENTS]
    time.sleep(seconds)
    for program in clients:
        program.stop()
    monitored, got, put = [program.objects() for program in clients]
    server.stop()
    served = [line.get("fields", line) for line in server.objects()]
    return {
        "iterations_per_s": rate(served, "iterations"),
        "local_updates_per_s": rate(served, "updates"),
        "remote_updates_per_s": rate(monitored, "updates"),
        "gets_per_s": rate(got, "gets"),
        "puts_per_s": rate(put, "puts"),
        "wrong": sum(report.get("unlike") or 0 for report in served + monitored + got),
    }


def pvxs(size, seconds, _folder):
    source = ["--produce", "yes", "--elements", size, "--name", PRODUCED, "--monitors", "1"]
    server = Program(["target/peers/pvxs-server", *source, "--mailbox", PUT])
    client = ["target/peers/pvxs-client"]
    options = ["--server", server.address(), "--seconds", str(seconds)]
    arguments = {
        "monitor": ["monitor", PRODUCED, "--queue-size", "2"],
        "get": ["get", PRODUCED],
        "put": ["put", PUT, "--elements", size],
    }
    clients = [Program([*client, *arguments[name], *options]) for name in CLIENTS]
    totals = [program.objects()[-1] for program in clients]
    monitor_total, got_total, put_total = totals
    monitored, got, put = [total["operations_per_s"] for total in totals]
    server.stop()
    produced = next(line for line in server.objects() if line.get("total"))
    return {
        "iterations_per_s": produced["iterations_per_s"],
        "local_updates_per_s": produced["updates_per_s"],
        "remote_updates_per_s": monitored,
        "gets_per_s": got,
        "puts_per_s": put,
        # What a monitor's update brings again or out of order is a habit of pvxs (records-load.md).
        "not_advancing": monitor_total["wrong"],
        "wrong": got_total["wrong"] + put_total["wrong"] + sum(one["errors"] for one in totals),
    }


def main():
    which, size, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        programs = {"loadline": loadline, "pvxs": pvxs}[which]
        for name, value in programs(size, seconds, folder).items():
            print(f"{name}={value}")


main()
