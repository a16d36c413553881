"""ecFlow's own answers: for each FOLDER/*.def it writes, beside it, what the definition prints in
each style (.DEFS, .STATE, .MIGRATE), or the error (.error). A definition that ends the interpreter
(an assertion of ecFlow's) has .abort."""

import glob
import os
import sys

import ecflow


def answer(path):
    try:
        definition = ecflow.Defs(path)
    except RuntimeError as error:
        with open(path + ".error", "w") as out:
            out.write(str(error))
        return
    for name in ("DEFS", "STATE", "MIGRATE"):
        ecflow.PrintStyle.set_style(getattr(ecflow.Style, name))
        with open(path + "." + name, "w", newline="") as out:
            out.write(str(definition))


for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.def"))):
    child = os.fork()
    if child == 0:
        answer(path)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        open(path + ".abort", "w").close()
