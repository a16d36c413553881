#!/usr/bin/python3
"""Reads a definition by ecFlow's own library, prints it, reads that again, compares both.

usage: ecflow_defs.py FILE [STYLE]

STYLE is defs, state, or, as unless stated, migrate, which is a checkpoint.

Debian's python3-ecflow is a module of Debian's interpreter. What it prints are the names of
`loadline workflow print FILE --style STYLE --again`.
"""

import os
import sys
import tempfile
import time

try:
    import ecflow
except ImportError:
    sys.exit("python3-ecflow is not installed (`cargo xtask peers`)")


def timed(name, call):
    begun = time.perf_counter_ns()
    result = call()
    print(f"{name}={time.perf_counter_ns() - begun}")
    return result


def main():
    file, style = sys.argv[1], (sys.argv[2:] or ["migrate"])[0]
    with tempfile.TemporaryDirectory() as folder:
        printed = os.path.join(folder, "printed")
        defs = timed("parse_ns", lambda: ecflow.Defs(file))
        if style == "migrate":
            timed("print_ns", lambda: defs.save_as_checkpt(printed))
        else:
            style = getattr(ecflow.Style, style.upper())
            timed("print_ns", lambda: defs.save_as_defs(printed, style))
        again = timed("reload_ns", lambda: ecflow.Defs(printed))
        print(f"printed_bytes={os.path.getsize(printed)}")
        nodes = len(defs.get_all_nodes())
        if defs != again or nodes == 0:
            sys.exit(f"{file}: what is printed is read as another definition")
        print(f"nodes={nodes}")
        begun = time.perf_counter_ns()
        del again
        print(f"destroy_ns={time.perf_counter_ns() - begun}")


main()
