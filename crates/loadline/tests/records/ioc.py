"""The IOC of Python's wheels, for our client. Arguments: `pvxs` (QSRV of pvxs) or `pvaccess` (that of
pvAccessCPP), its ports for TCP and for searches, and a port for Channel Access, which every IOC
opens. Prints its TCP address, and ends with its input."""
import os
import sys
import tempfile

which, port, search, other = sys.argv[1:5]
os.environ.update(
    EPICS_PVAS_INTF_ADDR_LIST="127.0.0.1",
    EPICS_PVAS_SERVER_PORT=port,
    EPICS_PVA_SERVER_PORT=port,
    EPICS_PVAS_BROADCAST_PORT=search,
    EPICS_PVA_BROADCAST_PORT=search,
    EPICS_PVAS_AUTO_BEACON_ADDR_LIST="NO",
    EPICS_CAS_INTF_ADDR_LIST="127.0.0.1",
    EPICS_CA_SERVER_PORT=other,
    EPICS_CAS_AUTO_BEACON_ADDR_LIST="NO",
    PVXS_QSRV_ENABLE="YES",
)
# What an IOC says when it starts is not for who waits for the address.
said = os.dup(1)
os.dup2(2, 1)

from epicscorelibs import ioc

RECORDS = """
record(ao, "number") {
    field(VAL, "1.5") field(DRVL, "-10") field(DRVH, "10") field(EGU, "C") field(PINI, "YES")
    info(Q:group, {"both": {"n": {"+channel": "VAL"}}})
}
record(mbbo, "mode") { field(ZRST, "off") field(ONST, "on") }
record(waveform, "array") { field(FTVL, "LONG") field(NELM, "100000") }
record(stringout, "label") {
    field(VAL, "words")
    info(Q:group, {"both": {"l": {"+channel": "VAL"}}})
}
"""
with tempfile.NamedTemporaryFile("w", suffix=".db") as file:
    file.write(RECORDS)
    file.flush()
    if which == "pvxs":
        import pvxslibs.path

        extra = (("pvxsIoc.dbd", pvxslibs.path.dbd_path),), ("pvxslibs.lib.pvxsIoc",)
    else:
        extra = ioc.pva_dbd_load, ioc.pva_dso_load
    ioc.start_ioc(file.name, extra_dbd_load=extra[0], extra_dso_load=extra[1])
os.write(said, f"127.0.0.1:{port}\n".encode())
sys.stdin.read()
os._exit(0)
