"""Calls a server's functions with grpcio, whose messages come from its reflection alone."""

import sys
import threading
import time

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

address = sys.argv[1]
channel = grpc.insecure_channel(address)
database = ProtoReflectionDescriptorDatabase(channel)
pool = descriptor_pool.DescriptorPool(database)


def message(name):
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def method(path):
    service, name = path.rsplit("/", 1)
    found = pool.FindServiceByName(service).FindMethodByName(name)
    kinds = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, False): channel.stream_unary,
        (True, True): channel.stream_stream,
    }
    make = kinds[found.client_streaming, found.server_streaming]
    answer = message_factory.GetMessageClass(found.output_type)
    return make(
        "/" + path,
        request_serializer=lambda one: one.SerializeToString(),
        response_deserializer=answer.FromString,
    )


def refused(code, work):
    try:
        work()
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), error.details())
        return error
    raise AssertionError(f"not refused with {code}")


services = set(database.get_services())
assert "loadline.rpc.v1.Table" in services and "grpc.testing.TestService" in services, services

Number, Sample, Pause = (message(f"loadline.rpc.v1.{n}") for n in ("Number", "Sample", "Pause"))
add = method("loadline.rpc.v1.Table/Add")


# Totals are exact, whoever adds.
def add_many():
    for _ in range(200):
        add(Number(value=3))


threads = [threading.Thread(target=add_many) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert add(Number(value=-1)).value == 4 * 200 * 3 - 1

sample = Sample(text="größe", reals=[1.5, -2.5], inner=Sample(number=-1), boxed=Number(value=7))
sample.counts["a"] = 1
echo = method("loadline.rpc.v1.Table/Echo")
assert echo(sample) == sample
for algorithm in (grpc.Compression.Gzip,):
    large = Sample(text="x" * 1_000_000)
    assert echo(large, compression=algorithm) == large

# Limits, each for its own call only.
error = refused(
    grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: echo(Sample(blob=bytes(5_000_000)))
)
assert "larger than max (50000" in error.details(), error.details()
assert echo(Sample(blob=bytes(4_000_000))).blob == bytes(4_000_000)

# Deadlines: 4, and not as a cancellation.
sleep = method("loadline.rpc.v1.Table/Sleep")
refused(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: sleep(Pause(ns=10**10), timeout=0.05))

# Status and metadata.
Simple = message("grpc.testing.SimpleRequest")
unary = method("grpc.testing.TestService/UnaryCall")
status = {"code": 5, "message": "größe % \n x"}
error = refused(
    grpc.StatusCode.NOT_FOUND, lambda: unary(Simple(response_status=status))
)
assert error.details() == "größe % \n x", error.details()
answer, call = unary.with_call(
    Simple(response_size=10),
    metadata=(
        ("x-grpc-test-echo-initial", "there"),
        ("x-grpc-test-echo-trailing-bin", b"\x00\x01\xff"),
    ),
)
assert len(answer.payload.body) == 10
assert ("x-grpc-test-echo-initial", "there") in call.initial_metadata()
assert ("x-grpc-test-echo-trailing-bin", b"\x00\x01\xff") in call.trailing_metadata()
refused(
    grpc.StatusCode.UNIMPLEMENTED, lambda: method("grpc.testing.TestService/UnimplementedCall")(
        message("grpc.testing.Empty")()
    )
)

# Streams, and one that is given up.
Output = message("grpc.testing.StreamingOutputCallRequest")
output = method("grpc.testing.TestService/StreamingOutputCall")
sizes = [1, 100_000, 0, 3]
parameters = [{"size": size} for size in sizes]
got = [len(one.payload.body) for one in output(Output(response_parameters=parameters))]
assert got == sizes, got
duplex = method("grpc.testing.TestService/FullDuplexCall")
got = [len(one.payload.body) for one in duplex(Output(response_parameters=[p]) for p in parameters)]
assert got == sizes, got
stream = output(Output(response_parameters=[{"size": 1, "interval_us": 10_000}] * 1000))
next(stream)
stream.cancel()
refused(grpc.StatusCode.CANCELLED, lambda: list(stream))
total = sum(1 for _ in output(Output(response_parameters=[{"size": 10}] * 20_000)))
assert total == 20_000, total
large = [len(one.payload.body) for one in output(Output(response_parameters=[{"size": 10**6}] * 100))]
assert large == [10**6] * 100, large

# Health, and its watch of what is not there.
Health = message("grpc.health.v1.HealthCheckRequest")
check = method("grpc.health.v1.Health/Check")
assert check(Health()).status == 1
assert check(Health(service="loadline.rpc.v1.Table")).status == 1
refused(grpc.StatusCode.NOT_FOUND, lambda: check(Health(service="none")))
watch = method("grpc.health.v1.Health/Watch")(Health(service="none"))
assert next(watch).status == 3
watch.cancel()

# A client that keeps its connection alive too eagerly learns so, and goes on with another.
eager = grpc.insecure_channel(
    address,
    options=[
        ("grpc.keepalive_time_ms", 20),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ],
)
bare = eager.unary_unary("/loadline.rpc.v1.Table/Add")
before = bare(b"")
time.sleep(0.5)
assert bare(b"", wait_for_ready=True) == before

print("all is right")
