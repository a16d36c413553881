"""ecFlow's own simulation of each FOLDER/*.def: beside it .runs has a line for each minute in which
anything was submitted, with the paths; the first suite's task /tick/t runs each minute. .error has
what keeps a definition from being read, and .abort marks one that ends the interpreter."""

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
    folder = path + ".simulated"
    os.makedirs(folder)
    os.chdir(folder)
    definition.simulate()
    tasks = {task.get_abs_node_path() for task in definition.get_all_tasks()}
    minutes = []
    with open("tick.def.log") as log:
        for line in log:
            if " submitted: " not in line:
                continue
            node = line.split(" submitted: ")[1].split()[0]
            if node == "/tick/t":
                minutes.append([])
            elif node in tasks:
                minutes[-1].append(node)
    with open(path + ".runs", "w") as out:
        for minute, nodes in enumerate(minutes):
            if nodes:
                out.write("%d %s\n" % (minute, " ".join(sorted(nodes))))


for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.def"))):
    child = os.fork()
    if child == 0:
        answer(path)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        open(path + ".abort", "w").close()
