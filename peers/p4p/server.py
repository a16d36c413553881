"""A p4p server of counted values: the same records as peers/pvxs/server.cpp, from Python."""

import argparse
import json
import os
import signal
import threading
import time

import numpy
from p4p.nt import NTScalar
from p4p.server import Server
from p4p.server.thread import SharedPV


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="TCP port; 0 is any")
    parser.add_argument("--records", type=int, default=1, help="how many records")
    parser.add_argument("--name-bytes", type=int, default=8, help="k and digits, so many bytes")
    parser.add_argument("--name", help="what the one record is called instead")
    parser.add_argument("--elements", type=int, default=0, help="0 is scalars")
    parser.add_argument("--produce", choices=["yes", "no"], default="no")
    parser.add_argument("--delay", type=float, default=0.0001, help="the producer's pause, in s")
    return parser.parse_args()


class Keep:
    """What a client writes is kept with the time at which it came."""

    def put(self, pv, op):
        pv.post(op.value(), timestamp=time.time())
        op.done()


def main():
    args = options()
    kind = "al" if args.elements else "l"

    def made(value):
        return numpy.full(args.elements, value, dtype="i8") if args.elements else value

    digits = args.name_bytes - 1
    names = [args.name] if args.name else [f"k{i:0{digits}}" for i in range(args.records)]
    pvs = {}
    for name in names:
        pvs[name] = SharedPV(nt=NTScalar(kind), initial=made(0), handler=Keep())
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    conf = {
        "EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1",
        "EPICS_PVAS_SERVER_PORT": str(args.port),
        "EPICS_PVAS_BROADCAST_PORT": "0",
        "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO",
    }
    with Server(providers=[pvs], conf=conf, useenv=False) as server:
        port = server.conf()["EPICS_PVAS_SERVER_PORT"]
        ready = {"ready": True, "service": "p4p-server", "pid": os.getpid()}
        line = {**ready, "address": f"127.0.0.1:{port}", "addresses": {}}
        print(json.dumps(line, separators=(",", ":")), flush=True)
        value = 0
        while not stop.wait(args.delay if args.produce == "yes" else None):
            value += 1
            for pv in pvs.values():
                pv.post(made(value), timestamp=time.time())


main()
