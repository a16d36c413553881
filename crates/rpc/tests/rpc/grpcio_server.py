"""A server of gRPC on C-core with reflection v1alpha only, which ends with standard input."""

import sys
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_reflection.v1alpha import reflection

file = descriptor_pb2.FileDescriptorProto(name="sums.proto", package="sums", syntax="proto3")
number = file.message_type.add(name="Number")
number.field.add(name="value", number=1, type=3, label=1)
service = file.service.add(name="Sums")
for name, client, server in [
    ("Add", False, False),
    ("All", True, False),
    ("Count", False, True),
    ("Each", True, True),
]:
    method = service.method.add(name=name, input_type=".sums.Number", output_type=".sums.Number")
    method.client_streaming, method.server_streaming = client, server
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Number = message_factory.GetMessageClass(pool.FindMessageTypeByName("sums.Number"))


def add(request, context):
    if request.value < 0:
        context.send_initial_metadata((("x-there", "1"),))
        context.abort(grpc.StatusCode.OUT_OF_RANGE, "größe % \n x")
    return Number(value=request.value + 1)


def every(requests, context):
    return Number(value=sum(one.value for one in requests))


def count(request, context):
    for value in range(request.value):
        yield Number(value=value)


def each(requests, context):
    for one in requests:
        yield Number(value=-one.value)


kinds = {
    "Add": (grpc.unary_unary_rpc_method_handler, add),
    "All": (grpc.stream_unary_rpc_method_handler, every),
    "Count": (grpc.unary_stream_rpc_method_handler, count),
    "Each": (grpc.stream_stream_rpc_method_handler, each),
}
handlers = {
    name: make(work, Number.FromString, lambda one: one.SerializeToString())
    for name, (make, work) in kinds.items()
}
server = grpc.server(futures.ThreadPoolExecutor(4), compression=grpc.Compression.Gzip)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("sums.Sums", handlers),))
reflection.enable_server_reflection(("sums.Sums", reflection.SERVICE_NAME), server, pool=pool)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
server.stop(0)
