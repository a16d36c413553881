"""What a p4p client finds at our server: get, put, monitor and rpc, with and without p4p's own
types. Arguments: the server's address, the search address, and which of them to use."""
import os
import sys
import threading

address, search, way = sys.argv[1:4]
os.environ["EPICS_PVA_AUTO_ADDR_LIST"] = "NO"
os.environ["EPICS_PVA_NAME_SERVERS"] = address if way == "tcp" else ""
os.environ["EPICS_PVA_ADDR_LIST"] = search if way == "udp" else ""

import numpy
from p4p import Type, Value
from p4p.client.thread import Context, Disconnected, RemoteError
from p4p.nt import NTURI


class Heard:
    """What a monitor brings, to be waited for."""

    def __init__(self):
        self.all, self.more = [], threading.Condition()

    def __call__(self, value):
        with self.more:
            self.all.append(value)
            self.more.notify()

    def wait(self, done):
        with self.more:
            assert self.more.wait_for(lambda: done(self.all), 20), self.all


def refused(what, *words):
    try:
        what()
    except RemoteError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("it was not refused")


def wrapped():
    with Context("pva") as client:
        reading = client.get("temperature")
        assert reading == 20.5 and reading.severity == 0 and reading.timestamp > 1.6e9
        client.put("temperature", 61.5)
        assert client.get("temperature").severity == 1
        refused(lambda: client.put("temperature", 100.0), "outside", "0 to 80")
        refused(lambda: client.put("label", "new"), "label can only be read")
        client.put("mode", "on")
        assert str(client.get("mode")) == "on"
        wave = numpy.arange(100_000, dtype="i8")
        client.put("wave", wave)
        assert (client.get("wave") == wave).all()
        client.put("wave", wave[:3])
        assert list(client.get("table").value.b) == [1.0, 2.0]
        assert client.get("camera").shape == (0,)
        for kind in ["u1", "i4", "f8", "u2"]:
            image = numpy.arange(12, dtype=kind).reshape(3, 4)
            client.put("camera", image)
            seen = client.get("camera")
            assert seen.dtype == image.dtype and (seen == image).all(), kind
        many = client.get(["temperature", "wave", "label"])
        assert many[2] == "words" and list(many[1]) == [0, 1, 2]


def plain():
    with Context("pva", nt=False) as client:
        client.put("temperature", {"value": 20.5})
        reading = client.get("temperature", request="field(value,control.limitHigh)")
        assert reading.changedSet() == {"value", "control.limitHigh"}
        assert reading.value == 20.5 and reading.control.limitHigh == 80
        assert client.get("temperature").display.units == "C"
        assert client.get("camera").getID() == "epics:nt/NTNDArray:1.0"
        refused(lambda: client.get("temperature", request="field(nothing)"), "no field")
        heard = Heard()
        request = "field(value)record[queueSize=8,pipeline=true]"
        monitor = client.monitor("temperature", heard, request=request)
        heard.wait(lambda all: len(all) == 1)
        for step in range(1, 11):
            client.put("temperature", {"value": 20.5 + step})
            heard.wait(lambda all: len(all) == step + 1)
        assert [value.value for value in heard.all] == [20.5 + step for step in range(11)]
        assert all(value.changedSet() == {"value"} for value in heard.all[1:])
        monitor.close()
        client.put("temperature", {"value": 20.5})


def calls():
    with Context("pva") as client:

        def call(**query):
            kind = NTURI([(name, "s") for name in query])
            return client.rpc("server", kind.wrap("server", kws=query))

        before = list(call(op="channels"))
        assert before == ["camera", "label", "mode", "table", "temperature", "wave"]
        assert call(op="info").records == 6
        declared = '[[record]]\nname = "made"\ntype = "int"\nvalue = 5\n'
        assert call(op="create", toml=declared) == 1
        refused(lambda: call(op="create", toml=declared), "already")
        heard = Heard()
        monitor = client.monitor("made", heard, notify_disconnect=True)
        heard.wait(lambda all: 5 in all)
        assert call(op="destroy", name="made") == 1
        heard.wait(lambda all: isinstance(all[-1], Disconnected) and len(all) > 1)
        monitor.close()
        refused(lambda: client.rpc("wave", Value(Type([("q", "s")]), {})), "called")


wrapped()
plain()
calls()
print("all is well")
