#!/usr/bin/python3
"""Makes a job of the script of each task of a definition by ecFlow's own library, starts none, and
prints how many a second.

usage: ecflow_jobs.py FILE HOME FOLDER

HOME is ECF_HOME; jobs are written below FOLDER. Debian's python3-ecflow is a module of Debian's
interpreter.
"""

import os
import sys
import time

try:
    import ecflow
except ImportError:
    sys.exit("python3-ecflow is not installed (`cargo xtask peers`)")


def main():
    file, home, folder = sys.argv[1:]
    defs = ecflow.Defs(file)
    for suite in defs.suites:
        suite.add_variable("ECF_HOME", home)
    control = ecflow.JobCreationCtrl()
    control.set_dir_for_job_creation(folder)
    begun = time.perf_counter()
    defs.check_job_creation(control)
    took = time.perf_counter() - begun
    if control.get_error_msg():
        sys.exit(control.get_error_msg())
    jobs = sum(len(files) for _, _, files in os.walk(folder))
    print(f"jobs={jobs} jobs_per_s={jobs / took:.1f}")


main()
