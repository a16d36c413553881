"""What a client of pvAccessCPP, that of pvaPy, finds at our server. Argument: the address at which it
is searched."""
import os
import sys

os.environ["EPICS_PVA_AUTO_ADDR_LIST"] = "NO"
os.environ["EPICS_PVA_ADDR_LIST"] = sys.argv[1]

from pvaccess import Channel, PvaException, PvDouble, PvObjectQueue


def refused(what, word):
    try:
        what()
    except PvaException as error:
        assert word in str(error), error
    else:
        raise AssertionError("it was not refused")


both = "putField(value)getField(value,alarm)"
number = Channel("temperature")
assert number.get("field()")["value"] == 20.5
assert number.putGet(PvDouble(61.5), both)["alarm.severity"] == 1
assert number.getPut(both)["value"] == 61.5
refused(lambda: number.putGet(PvDouble(99.0), both), "outside of the limits")
assert number.get()["value"] == 61.5

wave = Channel("wave")
wave.putScalarArray(list(range(100_000)))
assert list(wave.get()["value"]) == list(range(100_000))
wave.putScalarArray([-7, -8, -9], "field(value[array=10:2:14])")
assert list(wave.get("field(value[array=9:15])")["value"]) == [9, -7, 11, -8, 13, -9, 15]
refused(lambda: wave.putScalarArray([1], "field(value[array=0:9])"), "10 elements, and 1 came")

# A call back would wait for Python, and pvaPy holds that while it puts: a queue needs none.
heard = PvObjectQueue(20)
number.qMonitor(heard, "field(value)")
assert heard.get(20)["value"] == 61.5
for step in range(7):
    number.put(PvDouble(20.0 + step))
    assert heard.get(20)["value"] == 20.0 + step
number.stopMonitor()
print("all is well", flush=True)
# What its threads hold is not ended in any order that works.
os._exit(0)
