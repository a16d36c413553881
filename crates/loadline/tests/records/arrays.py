"""What a p4p client sees of a source of arrays: every update is whole, and the numbers advance.
Argument: the server's address."""
import os
import sys
import threading

os.environ["EPICS_PVA_AUTO_ADDR_LIST"] = "NO"
os.environ["EPICS_PVA_NAME_SERVERS"] = sys.argv[1]

from p4p.client.thread import Context

seen, enough = [], threading.Event()


def heard(value):
    array = value.value
    # The very first version is empty.
    if len(array):
        assert len(array) == 50_000 and (array == array[0]).all(), array
        seen.append(int(array[0]))
    if len(seen) == 30:
        enough.set()


with Context("pva", nt=False) as client:
    monitor = client.monitor("arrayPerformance", heard, request="record[queueSize=4]")
    assert enough.wait(60), seen
    monitor.close()
    got = client.get("arrayPerformance", request="field(value)").value
    assert len(got) == 50_000 and got[0] == got[-1] >= seen[-1]
assert all(before < after for before, after in zip(seen, seen[1:])), seen
print("all is well")
