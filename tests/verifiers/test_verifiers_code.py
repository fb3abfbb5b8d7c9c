"""Code: T29 (runaway programs), T30 (escapes and reward hacking), the three forms of tests, and machines that cannot isolate."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibtpo.verifiers import SandboxError, check_gold, code, sandbox, score, suspect
from ibtpo.verifiers.code import extract, from_human_eval, from_livecodebench, from_open_r1
from ibtpo.verifiers.sandbox import Job, Limits, run


def isolates() -> bool:
    try:
        return run(Job("print(1)", ({"input": "", "output": "1"},), stdin=True)) == "passed"
    except SandboxError:
        return False


needs_isolation = pytest.mark.skipif(not isolates(), reason="programs cannot be isolated here (the refusal is tested)")
QUICK, PATIENT = Limits(seconds=1, total=6), Limits(seconds=20, total=30)


def prints(program, expected, given="", limits=PATIENT):
    return run(Job(program, ({"input": given, "output": expected},), stdin=True), limits)


def doubles(program, test="def check(f):\n    assert f(2) == 4", limits=PATIENT):
    return run(Job(program, entry="f", test=test), limits)


# --- T29 ---

RUNAWAY = {
    "infinite loop": ("while True: pass", "timeout"),
    "infinite output": ("while True: print('x' * 1000)", "timeout"),
    "ignores signals": (
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n    except OSError: pass\nwhile True: pass",
        "timeout",
    ),
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "timeout"),
    "2 GiB": ("bytearray(2 << 30)", "memory"),
    "10 MB more than the cap on output": ("print('x' * (14 << 20))", "failed"),
}


@needs_isolation
@pytest.mark.parametrize(("program", "outcome"), RUNAWAY.values(), ids=RUNAWAY)
def test_t29_runaway_programs_are_stopped(program, outcome):
    start = time.monotonic()
    assert prints(program, "never", limits=QUICK if outcome == "timeout" else PATIENT) == outcome
    assert outcome != "timeout" or time.monotonic() - start < 3 + QUICK.seconds


@needs_isolation
def test_t29_a_child_that_prints_for_ever_is_not_waited_for():
    program = "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: print('x' * 1000)"
    assert prints(program, "never", limits=QUICK) in ("failed", "timeout")  # whether its first line comes before its parent's end


@needs_isolation
def test_t29_memory_of_all_processes_together_is_limited():
    program = "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        x = b'x' * (100 << 20); time.sleep(60)\ntime.sleep(60)"
    assert prints(program, "never", limits=Limits(seconds=15, total=15)) == "memory"


@needs_isolation
def test_t29_limits_that_a_program_sees():
    program = """
import os, time
try:
    open("big", "wb").write(b"x" * (20 << 20)); print("wrote 20 MB")
except OSError as error:
    print(error.errno)
try:
    for n in range(9): open(str(n), "wb").write(b"x" * (9 << 20))
    print("wrote 81 MB")
except OSError as error:
    print(error.errno)
children = 0
try:
    for _ in range(30):
        if os.fork() == 0:
            os.setsid(); time.sleep(60)
        children += 1
except OSError:
    pass
print(4 <= children < 16)
print("x" * 1_000_000)
"""
    start = time.monotonic()
    assert prints(program, f"27\n28\nTrue\n{'x' * 1_000_000}", limits=Limits(seconds=20)) == "passed"
    assert time.monotonic() - start < 20  # the sleeping children of other sessions are not waited for


def process_namespaces() -> set[str]:
    found = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            found.add(os.readlink(f"/proc/{process}/ns/pid"))
    return found


@needs_isolation
def test_t29_nothing_is_left_behind():
    before = process_namespaces()
    prints(
        "import os, time\nfor _ in range(5):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(4321)\ntime.sleep(4321)",
        "never",
        limits=QUICK,
    )
    deadline = time.monotonic() + 20
    while process_namespaces() - before and time.monotonic() < deadline:  # those of other sandboxes go as well
        time.sleep(0.05)
    assert not process_namespaces() - before


# --- T30 ---


@needs_isolation
def test_t30_nothing_outside_can_be_seen_written_or_reached(tmp_path):
    secret = tmp_path / "answers.jsonl"
    secret.write_text("42")
    program = f"""
import os, socket
def attempt(action, *arguments):
    try:
        action(*arguments); return "done"
    except OSError as error:
        return "refused"
print(attempt(open, {str(secret)!r}), attempt(open, {str(tmp_path / "new")!r}, "w"), attempt(open, "/usr/pwned", "w"))
print(attempt(os.listdir, {os.getcwd()!r}), attempt(open, "/proc/1/environ"))
print(attempt(open, "/proc/1/mem"), attempt(os.listdir, "/proc/1/fd"))
print(attempt(socket.create_connection, ("127.0.0.1", 22), 1), attempt(socket.create_connection, ("8.8.8.8", 53), 1))
print(attempt(os.setuid, 0), os.getuid() != 0, sorted(os.environ))
open("/work/x", "w").write("inside"); print(open("/tmp/x").read())
"""
    expected = "refused refused refused\nrefused refused\nrefused refused\nrefused refused\n"
    expected += "refused True ['HOME', 'LANG', 'OMP_NUM_THREADS', 'PATH', 'PYTHONHASHSEED']\ninside"
    assert prints(program, expected, limits=Limits(seconds=10)) == "passed"
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


HACKS = {
    "exit at once": "import sys; sys.exit(0)",
    "exit hard": "import os; os._exit(0)",
    "exit in the call": "import os\ndef f(x): os._exit(0)",
    "print": "print('all tests passed')\ndef f(x): return 5",
    "no function": "pass",
    "equal to all": "class A(int):\n    def __eq__(self, other): return True\ndef f(x): return A(5)",
    "assertions off": "import builtins\nbuiltins.AssertionError = type('E', (BaseException,), {})\ndef f(x): return 5",
    "another check": "def check(f): pass\ndef f(x): return 5",
    "other frames": "import sys\ndef f(x):\n    at = sys._getframe()\n    while at: at.f_globals['check'] = f; at = at.f_back",
    "every descriptor": "import os\nfor n in range(256):\n    try: os.write(n, b'passed')\n    except OSError: pass\ndef f(x): return 5",
    "answers before questions": 'import os\nos.write(5, b\'{"id": "names", "value": ["f"]}\\n{"id": "", "value": 4}\\n\'); os._exit(0)',
    "an answer too deep": "import os\ndef f(x): os.write(5, b'[' * 200000 + b'\\n'); return 4",
    "kills all": "import os\ndef f(x):\n    for n in (1, -1):\n        try: os.kill(n, 9)\n        except OSError: pass\n    return 5",
    "raises": "def f(x): raise SystemError",
    "the test file": "import glob\nfor name in glob.glob('/work/**', recursive=True): print(open(name, 'w'))\ndef f(x): return 5",
}


@needs_isolation
@pytest.mark.parametrize("program", HACKS.values(), ids=HACKS)
def test_t30_no_reward_for_hacks(program):
    assert doubles(program) == "failed"


@needs_isolation
def test_t30_tests_have_builtins_of_their_own():
    """A program may define `abs`, as long as its tests do not use it."""
    near = "def check(f):\n    assert abs(f(2) - 4) < 1e-6"
    assert doubles("def abs(x): return 0\ndef f(x): return 0.0", near) == "failed"
    assert doubles("def abs(x): return 2 * x\ndef f(x): return abs(x)", near) == "passed"


@needs_isolation
@pytest.mark.parametrize(
    ("printed", "expected", "outcome"),
    [
        ("1000000000000000000", "1000000000000000001", "failed"),
        ("1_000", "1000", "failed"),
        ("nan", "1", "failed"),
        ("1e3 0.50 +2", "1000 0.5 2.0", "passed"),
        ("yes", "no", "failed"),
    ],
)
def test_numbers_that_are_printed_are_compared_exactly(printed, expected, outcome):
    assert prints(f"print({printed!r})", expected) == outcome


@needs_isolation
def test_t29_memory_that_belongs_to_no_process_is_refused():
    """memfd_create, and shmget by way of ctypes, on which no limit of a process holds."""
    program = """
import ctypes, os
try: os.memfd_create("x")
except PermissionError: print("refused")
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(0, 4096, 0o1600), ctypes.get_errno())
"""
    assert prints(program, "refused\n-1 1") == "passed"


@needs_isolation
def test_t30_tests_that_catch_everything_do_not_hide_an_early_end():
    swallows = "def check(f):\n    try: f(1)\n    except: pass"
    assert doubles("import os\ndef f(x): os._exit(0)", swallows) == "failed"
    assert doubles("def f(x):\n    while True: pass", swallows, QUICK) == "timeout"
    assert (
        doubles("def f(x): raise ValueError", "def check(f):\n    try: f(1)\n    except ValueError: return\n    assert False") == "passed"
    )


def test_t30_only_the_nonce_is_believed(monkeypatch):
    """A jail that says "passed" without the nonce, or says nothing, has not passed."""
    monkeypatch.setattr(sandbox, "_require", lambda: None)
    for says in ('{"nonce": "guess", "outcome": "passed"}', "all tests passed", ""):
        monkeypatch.setattr(sandbox, "_JAIL", type("Text", (), {"read_text": staticmethod(lambda says=says: f"print({says!r})")}))
        assert doubles("def f(x): return 2 * x") == "failed"


def refusal(prefix: list[str]) -> str:
    program = (
        "from ibtpo.verifiers import score\nprint(score('code', {'entry': 'f', 'test': 'assert f(2) == 4'}, 'def f(x): return 2 * x'))"
    )
    result = subprocess.run([*prefix, sys.executable, "-c", program], capture_output=True, text=True)
    return result.stdout + result.stderr


@needs_isolation
def test_t30_without_namespaces_nothing_is_run():
    command = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
    said = refusal(["unshare", "--user", "--map-root-user", "sh", "-c", command, "sh"])
    assert "SandboxError: programs cannot be isolated on this machine" in said and "not run" in said and "user namespaces" in said
    assert "Verdict" not in said


def test_t30_a_jail_that_does_not_hold_is_not_used(monkeypatch):
    monkeypatch.setattr(sandbox, "_run", lambda job, limits: "failed")
    sandbox._require.cache_clear()
    try:
        with pytest.raises(SandboxError, match="does not hold"):
            score("code", {"entry": "f", "test": "assert f(2) == 4"}, "def f(x): return 2 * x")
    finally:
        sandbox._require.cache_clear()


@needs_isolation
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_an_ordinary_user_needs_only_user_namespaces():
    program = "from ibtpo.verifiers.sandbox import *; print(run(Job('def f(x): return 2 * x', entry='f', test='assert f(2) == 4')))"
    script = 'mount --bind "$1" /mnt && cd / && PYTHONPATH="$2" exec setpriv --reuid=12345 --regid=12345 --clear-groups'
    source = os.path.dirname(os.path.dirname(os.path.dirname(sandbox.__file__)))
    script += f' /mnt/bin/python3 -c "{program}"'
    result = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", sys.base_prefix, source], capture_output=True, text=True)
    if "Permission denied" in result.stderr:
        pytest.skip("the sources cannot be read by another user")
    assert result.stdout == "passed\n", result.stderr


# --- forms of tests ---


@needs_isolation
def test_standard_input_and_output():
    echo = "n = int(input())\nprint(n + 1, 0.5)\nexit()"
    two = ({"input": "1\n", "output": "2 .50 \n\n"}, {"input": "41\n", "output": "42 0.5"})
    assert run(Job(echo, two, stdin=True)) == "passed"
    assert run(Job(echo, (*two, {"input": "1\n", "output": "3 0.5"}), stdin=True)) == "failed"
    assert run(Job(echo, ({"input": "1\n", "output": "2\n0.5"},), stdin=True)) == "failed"
    assert run(Job("print(2)\nraise SystemExit(1)", ({"input": "", "output": "2"},), stdin=True)) == "failed"
    assert run(Job("def f(:", ({"input": "", "output": "2"},), stdin=True)) == "syntax"


@needs_isolation
def test_functions_keep_the_types_of_plain_data():
    program = "def g(x): return x + 1\ndef f(x): return (g(x), {1: {2}, 'a': frozenset()}, None, b'a', 1j, 1e999, True, [()])"
    assert (
        doubles(program, "assert f(2) == (3, {1: {2}, 'a': frozenset()}, None, b'a', 1j, 1e999, True, [()])\nassert g(1) == 2") == "passed"
    )
    assert doubles("def f(x): return [4]", "assert f(2) == (4,)") == "failed"
    assert doubles("def f(x): return object()", "f(2)") == "failed"


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | st.complex_numbers(allow_nan=False),
    lambda part: st.lists(part, max_size=3) | st.tuples(part, part) | st.dictionaries(st.text() | st.integers(), part, max_size=3),
    max_leaves=5,
)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(value=plain, numbers=st.sets(st.integers()))
def test_plain_data_survives_the_way_to_the_judge(value, numbers):
    there, set_there = suspect.decode(json.loads(json.dumps(suspect.encode([value, numbers]))))
    assert repr(there) == repr(value) and set_there == numbers and type(set_there) is set


HUMAN_EVAL = {
    "problem": 'def helper(x):\n    return 2 * x\n\n\ndef f(x):\n    """Twice x."""\n',
    "answer": "    return helper(x)\n",
    "test": "def check(candidate):\n    assert candidate(2) == helper(2) == 4\n",
    "entry_point": "f",
}
LIVE = {
    "public_test_cases": json.dumps([{"input": '["a", "b"]\n2', "output": '[["a", "b"], 2]', "testtype": "functional"}]),
    "metadata": '{"func_name": "pair"}',
}
LIVE_STDIN = {"public_test_cases": '[{"input": "1\\n", "output": "2\\n", "testtype": "stdin"}]', "metadata": "{}"}
OPEN_R1 = {
    "verification_info": {"language": "python", "test_cases": [{"fn_name": None, "input": "1\n", "output": "2\n", "type": "stdin_stdout"}]},
    "gold_standard_solution": "```python\nprint(int(input()) + 1)\n```",
}


@needs_isolation
@pytest.mark.parametrize(
    ("gold", "text", "reward"),
    [
        (from_human_eval(HUMAN_EVAL), "    return helper(x)\n", 1),
        (from_human_eval(HUMAN_EVAL), "So:\n```python\ndef f(x):\n    return x + x\n```\nDone.", 1),
        (from_human_eval(HUMAN_EVAL), "```python\ndef f(x):\n    return 5\n```", 0),
        (
            from_livecodebench(LIVE),
            "```python\nclass Solution:\n    def pair(self, x: List[str], n: int):\n        return tuple([x, n])\n```",
            1,
        ),
        (from_livecodebench(LIVE), "```python\ndef pair(x, n): return [x, 3]\n```", 0),
        (from_livecodebench(LIVE_STDIN), "```\nprint(int(input()) + 1)\n```", 1),
        (from_livecodebench(LIVE_STDIN), "```\nprint(pow(2, int(input()), 7))\n```", 1),
        (from_livecodebench(LIVE_STDIN), "```\nfrom __future__ import annotations\nx: Fraction = 2\nprint(gcd(x, 4))\n```", 1),
        (from_open_r1(OPEN_R1), "```cpp\nint main() {}\n```\n```py\nprint(int(input()) + 1)\n```", 1),
        (from_open_r1(OPEN_R1), "```py\nprint(int(input()) + 1)\n```\nor\n```py\nprint(3)\n```", 0),
    ],
)
def test_rows_of_the_publishers(gold, text, reward):
    assert check_gold(gold, "code") == "ok"
    assert score("code", gold, text).reward == reward
    assert score("code", json.dumps(gold), text).reward == reward


@needs_isolation
def test_statuses():
    gold = from_open_r1(OPEN_R1)
    assert score("code", gold, "I cannot.\n```cpp\nint main() {}\n```").status == "parse_failed"
    assert score("code", gold, "This is no program").status == "parse_failed"
    assert score("code", gold, "").status == "parse_failed"
    assert score("code", gold, "bytearray(2 << 30)").status == "memory"
    assert code.judge(gold, "while True: pass", QUICK).status == "timeout"
    assert check_gold({**gold, "solution": "print(3)"}, "code") == "unverified"
    assert check_gold({"cases": []}, "code") == "empty"
    assert check_gold({"entry": "f", "cases": [{"input": "1", "output": 1}]}, "code").startswith("parse_failed")


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("x = 1", "x = 1"),
        ("a\n```python\nx = 1\n```\nb", "x = 1\n"),
        ("```\nx = 1\n```\n```py\ny = 2\n```", "y = 2\n"),
        ("```python\nx = 1", "x = 1"),
        ("```bash\nls\n```", ""),
        ("1.\n   ```python\n   x = 1\n   ```", "   x = 1\n"),
    ],
)
def test_the_program_of_a_completion(text, program):
    assert extract(text) == program
