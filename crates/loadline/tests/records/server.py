"""A p4p server for our client: a number, an array that is filled anew, and a sum. Prints its TCP
address, and ends with its input."""
import sys

import numpy
from p4p import Type, Value
from p4p.nt import NTEnum, NTScalar
from p4p.server import Server, StaticProvider
from p4p.server.thread import SharedPV

number = SharedPV(nt=NTScalar("d", display=True), initial=1.5)
mode = SharedPV(nt=NTEnum(), initial={"index": 0, "choices": ["off", "on"]})
array = SharedPV(nt=NTScalar("al"), initial=numpy.arange(200_000))
total = SharedPV(nt=NTScalar("d"), initial=0.0)


@number.put
@mode.put
@array.put
def put(pv, op):
    pv.post(op.value())
    op.done()


@total.rpc
def rpc(pv, op):
    query = op.value().query
    answer = float(query.a) + float(query.b)
    op.done(Value(Type([("value", "d")]), {"value": answer}))


provider = StaticProvider("all")
for name, pv in [("number", number), ("mode", mode), ("array", array), ("sum", total)]:
    provider.add(name, pv)
with Server(providers=[provider], isolate=True) as server:
    print("127.0.0.1:" + server.conf()["EPICS_PVAS_SERVER_PORT"], flush=True)
    sys.stdin.read()
