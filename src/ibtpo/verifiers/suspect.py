"""Runs inside the jail, as `python -c <this file> stdin|functions`: the program under test, and its conversation with the judge.

It has its source, what it reads or the arguments of its functions, and nothing else. Standard library only. The judge (`jail.py`) uses
`encode` and `decode` of this file too.
"""

import json
import os
import sys

SOURCE, CALLS, ANSWERS = 3, 4, 5  # descriptors
SYNTAX, MEMORY = 77, 78  # exit codes


def run_suspect(role):
    """What the fresh Python does: runs the program as __main__ and, in the role "functions", answers calls."""
    with os.fdopen(SOURCE, "rb") as file:
        source = file.read().decode(errors="replace")
    __builtins__.exit = __builtins__.quit = sys.exit
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    try:
        program = compile(source, "program.py", "exec")
    except (SyntaxError, ValueError, RecursionError):
        os._exit(SYNTAX)
    sys.setrecursionlimit(10_000)
    try:
        exec(program, names)
        if role == "functions":
            serve(names)
    except MemoryError:
        os._exit(MEMORY)


def serve(names):
    calls, answers = os.fdopen(CALLS, "r"), os.fdopen(ANSWERS, "w", buffering=1)
    known = [name for name, value in names.items() if callable(value) and not isinstance(value, type) and not name.startswith("__")]
    answers.write(json.dumps({"id": "names", "value": encode(known)}) + "\n")
    for line in calls:
        message = json.loads(line)
        try:
            function = names.get(message["call"]) or getattr(names["Solution"](), message["call"])
            answer = {"value": encode(function(*decode(message["args"]), **decode(message["kwargs"])))}
        except Exception as error:
            answer = {"raise": type(error).__name__, "text": str(error)[:1000]}
        answers.write(json.dumps({"id": message["id"], **answer}) + "\n")


def encode(value):
    """Plain data as JSON. Raises TypeError for anything else."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [encode(part) for part in value]
    if isinstance(value, tuple | set | frozenset):
        kind = next(kind for kind in (tuple, set, frozenset) if isinstance(value, kind))
        return {kind.__name__: [encode(part) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(part)] for key, part in value.items()]}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    raise TypeError(f"{type(value).__name__} is no plain data")


def decode(value):
    if isinstance(value, list):
        return [decode(part) for part in value]
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    if kind == "dict":
        return {decode(key): decode(part) for key, part in content}
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "complex":
        return complex(*content)
    return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](map(decode, content))


if __name__ == "__main__":
    run_suspect(sys.argv[1])
