#!/usr/bin/env python3
"""Loads a definition into a server by ecFlow's own client, stops the server after a checkpoint and
starts it again, and kills one after further changes and starts it again.

usage: workflow_server.py FILE FOLDER COMMAND...

COMMAND serves with FOLDER as its home; `{port}` in it is the port. The server has core 0, the
clients have core 1, where there are two. It prints how long the load took (`client_load_ns`: the
client's start, its parse, the transfer and the server's part), how long a start took until a ping
was answered, after a stop in good order (`restart_ns`) and after a kill (`recover_ns`), and what
was lost by the kill of the 1,000 labels that had been changed after the checkpoint (`lost`). After
each start every node has to be there.
"""

import os
import signal
import socket
import subprocess
import sys
import time

CHANGES = 1_000
CORES = sorted(os.sched_getaffinity(0))
WITHIN = 60.0
HEAD = '"cereal_class_version": 0,\n"value0": {\n"cereal_class_version": 0,\n"value0": {\n' \
       '"cereal_class_version": 0,\n"cl_host_": "localhost"\n},\n"user_": "%s"\n},\n'


def framed(name, members, user=os.environ.get("USER", "root")):
    text = '{\n"request": {\n"cmd_": {\n"polymorphic_id": 2147483649,\n' \
           f'"polymorphic_name": "{name}",\n"ptr_wrapper": {{\n"id": 2147483649,\n"data": {{\n' \
           f'{HEAD % user}{members}\n}}\n}}\n}}\n}}\n}}'.encode()
    return b"%8x" % len(text) + text


PING = framed("CtsCmd", '"api_": 8')


def asked(port, request):
    """The answer's document; nothing where the server doesn't answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=WITHIN) as connection:
            connection.sendall(request)
            answer = b""
            while more := connection.recv(1 << 16):
                answer += more
            return answer[8:]
    except ConnectionError:
        return b""


def free_port():
    """A port of ecFlow's range, 1024 to 49151, that no socket has."""
    for port in range(20_000 + os.getpid() % 20_000, 49_000):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    sys.exit("no port is free")


class Server:
    def __init__(self, command, home):
        self.port = free_port()
        self.command = [part.replace("{port}", str(self.port)) for part in command]
        self.home, self.process = home, None

    def start(self):
        """Starts it, and returns the nanoseconds until it answers a ping."""
        environment = {**os.environ, "ECF_HOME": self.home}
        with open(os.path.join(self.home, "server.out"), "ab") as output:
            begun = time.monotonic_ns()
            self.process = subprocess.Popen(
                self.command, env=environment, stdout=output, stderr=output, cwd=self.home,
                stdin=subprocess.DEVNULL,
                preexec_fn=lambda: os.sched_setaffinity(0, CORES[:1]))
        while b'"api_": 0' not in asked(self.port, PING):
            if self.process.poll() is not None:
                sys.exit(f"{self.command[0]} ended with {self.process.returncode}: "
                         + open(os.path.join(self.home, "server.out")).read()[-400:])
            if time.monotonic_ns() - begun > WITHIN * 1e9:
                sys.exit(f"{self.command[0]} answers no ping within {WITHIN:.0f} s")
            time.sleep(0.0005)
        return time.monotonic_ns() - begun

    def client(self, *arguments):
        """What ecFlow's client prints, and the nanoseconds that it takes."""
        begun = time.monotonic_ns()
        done = subprocess.run(["ecflow_client", *arguments, "--host=localhost",
                               f"--port={self.port}"], check=False, capture_output=True)
        took = time.monotonic_ns() - begun
        if done.returncode != 0:
            sys.exit(f"ecflow_client {arguments}: {(done.stderr + done.stdout)[-400:]!r}")
        return done.stdout, took

    def nodes(self):
        text, _ = self.client("--get")
        kinds = (b"suite ", b"family ", b"task ")
        return sum(line.lstrip().startswith(kinds) for line in text.splitlines())

    def stop(self):
        self.client("--terminate=yes")
        self.process.wait(WITHIN)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def changed(port, value):
    members = '"paths_": ["/loadline_changes/t"],\n"name_": "L",\n' \
              f'"value_": "{value}",\n"add_attr_type_": 6,\n"del_attr_type_": 16,\n' \
              '"change_attr_type_": 6,\n"flag_type_": 19,\n"flag_": false'
    answer = asked(port, framed("AlterCmd", members))
    if b'"api_": 0' not in answer:
        sys.exit(f"a label is not changed: {answer[-300:]!r}")


def whole(server, nodes, when):
    if (found := server.nodes()) != nodes:
        sys.exit(f"{found} of {nodes} nodes are there {when}")


def measured(server, file):
    server.start()
    _, took = server.client(f"--load={file}")
    print(f"client_load_ns={took}")
    changes = os.path.join(server.home, "changes.def")
    with open(changes, "w") as definition:
        definition.write('suite loadline_changes\n  task t\n    label L "0"\nendsuite\n')
    server.client(f"--load={changes}")
    nodes = server.nodes()
    server.client("--begin")
    server.client("--check_pt")
    server.stop()
    print(f"restart_ns={server.start()}")
    whole(server, nodes, "after a stop and a start")
    for number in range(1, CHANGES + 1):
        changed(server.port, number)
    server.kill()
    print(f"recover_ns={server.start()}")
    whole(server, nodes, "after a kill and a start")
    found = server.client("--query", "label", "/loadline_changes/t:L")[0].strip().decode()
    print(f"lost={CHANGES - int(found)}")
    print(f"nodes={nodes}")


def main():
    file, home, *command = sys.argv[1:]
    os.makedirs(home, exist_ok=True)
    server = Server(command, home)
    os.sched_setaffinity(0, CORES[-1:])
    try:
        measured(server, file)
    finally:
        server.kill()


main()
