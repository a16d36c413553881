"""What a p4p client finds of a group of records. Argument: the server's address."""
import os
import sys
import threading

os.environ["EPICS_PVA_AUTO_ADDR_LIST"] = "NO"
os.environ["EPICS_PVA_NAME_SERVERS"] = sys.argv[1]

from p4p.client.thread import Context, RemoteError

heard, more = [], threading.Condition()


def hear(value):
    with more:
        heard.append(value.changedSet())
        more.notify()


def wait(count):
    with more:
        assert more.wait_for(lambda: len(heard) == count, 20), heard


with Context("pva", nt=False) as client:
    monitor = client.monitor("both", hear, request="field(t.value,w.value)")
    wait(1)
    client.put("both", {"t.value": 30.5, "w.value": [4, 5]})
    wait(2)
    assert heard[1] == {"t.value", "w.value"}, heard
    assert client.get("temperature").value == 30.5
    assert list(client.get("wave").value) == [4, 5]
    try:
        client.put("both", {"w.value": [6], "t.value": 99.0})
    except RemoteError as error:
        assert "outside of the limits of temperature" in str(error), error
    else:
        raise AssertionError("it was not refused")
    client.put("temperature", {"value": 31.5})
    wait(3)
    assert heard[2] == {"t.value"}, heard
    got = client.get("both")
    assert got.t.value == 31.5 and list(got.w.value) == [4, 5] and got.t.display.units == "C"
    monitor.close()
print("all is well")
