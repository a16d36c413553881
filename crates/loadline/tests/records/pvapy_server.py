"""A pvDatabase server, by pvaPy, for our client. Arguments: its ports for TCP and for searches.
Prints its TCP address, and ends with its input."""
import os
import sys

port, search = sys.argv[1:3]
os.environ.update(
    EPICS_PVAS_INTF_ADDR_LIST="127.0.0.1",
    EPICS_PVAS_SERVER_PORT=port,
    EPICS_PVA_SERVER_PORT=port,
    EPICS_PVAS_BROADCAST_PORT=search,
    EPICS_PVA_BROADCAST_PORT=search,
    EPICS_PVAS_AUTO_BEACON_ADDR_LIST="NO",
)

from pvaccess import DOUBLE, LONG, PvaServer, PvObject

server = PvaServer()
server.addRecord("number", PvObject({"value": DOUBLE}, {"value": 1.5}), None)
server.addRecord("wave", PvObject({"value": [LONG]}, {"value": list(range(5))}), None)
big = list(range(200_000))
server.addRecord("big", PvObject({"value": [LONG]}, {"value": big}), None)
server.start()
print(f"127.0.0.1:{port}", flush=True)
sys.stdin.read()
os._exit(0)
