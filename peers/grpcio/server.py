"""A grpcio server with the methods that calls are measured by: loadline.rpc.v1.Table and the streams
of grpc.testing.TestService. The .proto files are those of our own server, read when it starts."""

import argparse
import json
import os
import pathlib
import signal
import sys
import threading
from concurrent import futures

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTO = ROOT / "crates" / "rpc" / "proto"
# A folder called grpc would hide the package, so that its file is found from where it lies.
sys.path[:0] = [str(PROTO), str(PROTO / "grpc" / "testing")]

sys.path.append(str(ROOT / "peers"))

import collected

table, table_services = grpc.protos_and_services("loadline/rpc/v1/table.proto")
testing, testing_services = grpc.protos_and_services("test.proto")


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="TCP port; 0 is any")
    parser.add_argument("--twice", type=int, default=0, help="every Nth Add is done twice")
    parser.add_argument("--not-at-all", type=int, default=0, help="every Nth Add is not done")
    parser.add_argument("--collected", metavar="HOST:PORT", help="what collecting garbage takes")
    parser.add_argument("--threads", type=int, default=8, help="threads that run functions")
    return parser.parse_args()


class Table(table_services.TableServicer):
    """The functions; the total is one for all connections. What is wrong is planted."""

    def __init__(self, twice, not_at_all):
        self.twice, self.not_at_all = twice, not_at_all
        self.adds = 0
        self.total = 0
        self.lock = threading.Lock()

    def Echo(self, request, context):
        return request

    def Add(self, request, context):
        with self.lock:
            self.adds += 1
            is_nth = [nth > 0 and self.adds % nth == 0 for nth in (self.twice, self.not_at_all)]
            self.total += request.value * (1 + is_nth[0] - is_nth[1])
            return table.Number(value=self.total)

    def Who(self, request, context):
        return table.Place(pid=os.getpid())


def answers(request):
    for one in request.response_parameters:
        body = testing.Payload(body=bytes(one.size))
        yield testing.StreamingOutputCallResponse(payload=body)


class TestService(testing_services.TestServiceServicer):
    """The streams."""

    def EmptyCall(self, request, context):
        return testing.Empty()

    def StreamingOutputCall(self, request, context):
        yield from answers(request)

    def StreamingInputCall(self, requests, context):
        size = sum(len(request.payload.body) for request in requests)
        return testing.StreamingInputCallResponse(aggregated_payload_size=size)

    def FullDuplexCall(self, requests, context):
        for request in requests:
            yield from answers(request)


def main():
    args = options()
    if args.collected:
        collected.of_this_process(args.collected)
    large = 64 << 20
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=args.threads),
        options=[("grpc.max_receive_message_length", large)],
    )
    table_services.add_TableServicer_to_server(Table(args.twice, args.not_at_all), server)
    testing_services.add_TestServiceServicer_to_server(TestService(), server)
    port = server.add_insecure_port(f"127.0.0.1:{args.port}")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    ready = {"ready": True, "service": "grpcio-server", "pid": os.getpid()}
    line = {**ready, "address": f"127.0.0.1:{port}", "addresses": {}}
    print(json.dumps(line, separators=(",", ":")), flush=True)
    stop.wait()
    server.stop(grace=1).wait()


main()
