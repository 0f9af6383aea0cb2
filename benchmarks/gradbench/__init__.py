"""A tool for the GradBench suite (https://github.com/gradbench/gradbench): `python -m benchmarks.gradbench`.

The suite's harness sends a message a line on standard input, in JSON, and reads an answer to each on standard output:

    {"id": 0, "kind": "start"}                         {"id": 0, "tool": "retrograde"}
    {"id": 1, "kind": "define", "module": "gmm"}       {"id": 1, "success": true}
    {"id": 2, "kind": "evaluate", "module": "gmm", "function": "jacobian", "input": {…, "min_runs": 1}}
                                                       {"id": 2, "success": true, "output": …, "timings": […]}

evals.py      what each eval asks for, by the programs of benchmarks/workloads
descents.py   the two evals that nest derivatives in derivatives
"""
