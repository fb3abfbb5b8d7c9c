"""Runs in a process of its own, as `python -c <this file>`: the jail in which strange programs run, and the judge inside it.

Three processes. The keeper makes new namespaces (mounts, processes, network, IPC; users too if it is not root) and waits. The judge is
process 1 in there: its root is an empty file system with Python and the system libraries in it, read-only, and one small writable folder;
it has no capabilities, cannot be traced or signalled from inside, and takes everything with it when it dies. The suspect is the
program under test (`suspect.py`): a fresh Python that gets its source, its inputs or the arguments of its functions, and nothing else.
Expected outputs, tests and the nonce stay in the judge. What a suspect returns reaches the judge as plain data, so no object of its own
takes part in a comparison. Standard library only; nothing of ibtpo is visible in the jail.
"""

import builtins
import ctypes
import decimal
import json
import os
import resource
import select
import signal
import struct
import sys
import time

SUSPECT = {"__name__": "suspect"}  # the contents of suspect.py, which comes with the order
INSIDE = 65534  # its user and group
_MOUNT = {"rdonly": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "bind": 4096, "rec": 16384, "private": 1 << 18}
_NAMESPACES = {"mount": 0x20000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
BUILTINS = frozenset(dir(builtins))
HIDDEN_MEMORY = {"x86_64": (0xC000003E, (319, 447, 29)), "aarch64": (0xC00000B7, (279, 447, 194))}  # the kernel's number of each call
_LINES = 1 << 24  # longest message of a suspect in bytes


class Failed(BaseException):
    """A verdict other than passed. The first one stands, even if the tests catch it."""

    first = None

    def __init__(self, outcome):
        Failed.first = Failed.first or outcome


# --- the jail -------------------------------------------------------------------------------------


def libc(name, *arguments):
    library = ctypes.CDLL(None, use_errno=True)
    arguments = [argument.encode() if isinstance(argument, str) else argument for argument in arguments]
    if getattr(library, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), f"{name}{arguments}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind=None, flags="", data=None):
    libc("mount", source, target, kind, ctypes.c_ulong(sum(_MOUNT[flag] for flag in flags.split())), data)


def read_only(path, recursive=True, devices=False):
    """Read-only, without set-uid; without devices, unless they are what it is for. mount_setattr, Linux >= 5.12."""
    flags = _MOUNT["rdonly"] | _MOUNT["nosuid"] | (0 if devices else _MOUNT["nodev"])
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)
    libc("syscall", ctypes.c_long(442), ctypes.c_int(-100), path, ctypes.c_uint(0x8000 * recursive), attributes, ctypes.c_size_t(32))


def separate():
    """New namespaces; who is not root becomes INSIDE in a user namespace of its own."""
    user, group = os.geteuid(), os.getegid()
    kinds = [kind for kind in _NAMESPACES if kind != "user" or user]
    libc("unshare", ctypes.c_int(sum(_NAMESPACES[kind] for kind in kinds)))
    if user:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{INSIDE} {user} 1"), ("gid_map", f"{INSIDE} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def build_root(visible, disk):
    """A root that holds `visible` read-only, /proc of the jail, and /work, of `disk` bytes, to write in."""
    mount(None, "/", None, "rec private")
    mount("tmpfs", "/tmp", "tmpfs", "nosuid nodev", "size=1m,mode=755")
    os.mkdir("/tmp/old")
    libc("pivot_root", "/tmp", "/tmp/old")
    os.chdir("/")
    for path in visible:
        graft(path)
    for path, kind, flags, data in (
        ("/proc", "proc", "nosuid nodev noexec", None),
        ("/work", "tmpfs", "nosuid nodev", f"size={disk},mode=777"),
    ):
        os.mkdir(path)
        mount(kind, path, kind, flags, data)
    libc("umount2", "/old", ctypes.c_int(2))
    os.rmdir("/old")
    os.symlink("work", "/tmp")
    read_only("/", recursive=False)
    os.chdir("/work")


def graft(path):
    old = "/old" + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.islink(old):
        os.symlink(os.readlink(old), path)
    elif os.path.isdir(old) and not os.path.exists(path):
        os.mkdir(path)
        mount(old, path, None, "bind rec")
        read_only(path)
    elif os.path.exists(old) and not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        mount(old, path, None, "bind")
        read_only(path, devices=path.startswith("/dev/"))


def give_up_rights(outside):
    """No root, no capabilities, none to be gained, no tracing of this process. `outside`: the user to become if this is root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(outside, outside, outside)
        os.setresuid(outside, outside, outside)
    libc("capset", struct.pack("II", 0x20080522, 0), struct.pack("IIIIII", 0, 0, 0, 0, 0, 0))
    libc("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    libc("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    libc("prctl", 1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG, last: a change of user clears it


# --- the judge ------------------------------------------------------------------------------------


def judge(job, limits):
    """Runs all tests of a job; returns if they all pass, raises Failed otherwise."""
    deadline = time.monotonic() + limits["total"]
    if job["stdin"]:
        for case in job["cases"]:
            suspect = Suspect(job["program"], limits, deadline, case["input"])
            output = suspect.output()
            suspect.end()
            if not same_output(output, case["output"]):
                raise Failed("failed")
        return
    suspect = Suspect(job["program"], limits, deadline)
    functions = {name: suspect.function(name) for name in suspect.answer() if name not in BUILTINS}  # the tests keep their own `abs`
    if job["entry"]:
        functions[job["entry"]] = suspect.function(job["entry"])
    for case in job["cases"]:
        if plain(functions[job["entry"]](*case["input"])) != plain(case["output"]):
            raise Failed("failed")
    if job["test"]:
        names = {"__name__": "test", **functions}
        exec(job["test"], names)
        if job["entry"] and "check" in names:
            names["check"](functions[job["entry"]])
    suspect.end()


class Suspect:
    """A running program. With `text` it reads that on standard input and writes an output; without, its functions can be called."""

    def __init__(self, program, limits, deadline, text=None):
        self.limits, self.deadline = limits, min(deadline, time.monotonic() + limits["seconds"])
        self.buffer, self.code, self.awaited = b"", None, "names"
        given = text if text is not None else ""
        inputs, self.calls = (in_memory(given), None) if text is not None else os.pipe()
        self.answers, outputs = os.pipe()
        source, nowhere = in_memory(program), os.open("/dev/null", os.O_RDWR)
        descriptors = {0: nowhere, 1: nowhere, 2: nowhere, SUSPECT["SOURCE"]: source}
        descriptors |= {SUSPECT["CALLS"]: inputs, SUSPECT["ANSWERS"]: outputs} if text is None else {0: inputs, 1: outputs}
        self.process = os.fork()
        if self.process == 0:
            become_suspect(descriptors, limits, "stdin" if text is not None else "functions")
        for descriptor in (inputs, outputs, source, nowhere):
            os.close(descriptor)

    def function(self, name):
        """A stand-in for a function of the suspect's: plain data goes to it, plain data comes back."""

        def call(*args, **kwargs):
            self.awaited = os.urandom(8).hex()  # answers given before the question do not count
            message = {"call": name, "id": self.awaited, "args": SUSPECT["encode"](list(args)), "kwargs": SUSPECT["encode"](kwargs)}
            message = json.dumps(message).encode() + b"\n"
            try:
                while message:
                    message = message[os.write(self.calls, message) :]
            except BrokenPipeError:
                self.ended()
            return self.answer()

        return call

    def answer(self):
        """The next answer of the suspect; an exception that it raised is raised here, as far as it is a builtin one."""
        while b"\n" not in self.buffer:
            part = self.read()
            if not part:
                self.ended()
            self.buffer += part
            if len(self.buffer) > _LINES:
                raise Failed("failed")
        line, _, self.buffer = self.buffer.partition(b"\n")
        try:
            message = json.loads(line)
            if message["id"] != self.awaited:
                raise ValueError("an answer to another question")
            if "value" in message:
                return SUSPECT["decode"](message["value"])
            name, text = str(message["raise"]), str(message["text"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Failed("failed") from None
        if name == "MemoryError":
            raise Failed("memory")
        kind = getattr(builtins, name, None)
        raise kind(text) if isinstance(kind, type) and issubclass(kind, Exception) else Failed("failed")

    def output(self):
        """All it writes until it ends, up to the cap."""
        kept = b""
        while part := self.read():
            kept += part[: self.limits["output"] - len(kept)]
        self.ended(in_order=True)
        return kept.decode(errors="replace")

    def read(self):
        """The next bytes; none once it has ended, whatever its children do. Raises Failed when time or memory are used up."""
        while True:
            if time.monotonic() > self.deadline:
                raise Failed("timeout")
            ended = self.has_ended()  # asked first: what it writes last is not to be missed
            if select.select([self.answers], [], [], 0 if ended else 0.03)[0]:
                return os.read(self.answers, 1 << 16)
            if ended:
                return b""
            self.within_limits()

    def within_limits(self):
        if time.monotonic() > self.deadline:
            raise Failed("timeout")
        if memory_used() > self.limits["memory"]:
            raise Failed("memory")

    def has_ended(self):
        if self.code is None:
            process, status = os.waitpid(self.process, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if process else None
        return self.code is not None

    def ended(self, in_order=False):
        """Waits for the end and raises Failed with its cause; returns if `in_order` and it has ended by itself with exit code 0."""
        while not self.has_ended():
            self.within_limits()
            time.sleep(0.002)
        if self.code == -signal.SIGXCPU:
            raise Failed("timeout")
        if not in_order or self.code != 0:
            raise Failed({SUSPECT["SYNTAX"]: "syntax", SUSPECT["MEMORY"]: "memory"}.get(self.code, "failed"))

    def end(self):
        """Ends it and all that it started."""
        for descriptor in (self.answers, self.calls):
            if descriptor is not None:
                os.close(descriptor)
        try:
            os.kill(-1, signal.SIGKILL)
            while True:
                os.wait()
        except (ProcessLookupError, ChildProcessError):
            pass


def in_memory(text):
    descriptor = os.memfd_create("text")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode(errors="surrogatepass"))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def memory_used():
    """Bytes that all processes of the jail but the judge have resident."""
    pages = 0
    for process in os.listdir("/proc"):
        if process.isdigit() and process != "1":
            try:
                with open(f"/proc/{process}/statm") as file:
                    pages += int(file.read().split()[1])
            except (OSError, IndexError):
                pass  # it has just ended
    return pages * resource.getpagesize()


def same_output(output, expected):
    """Equal line by line but for white space; words may also be equal as decimal numbers."""
    lines, others = ([line.split() for line in text.strip().splitlines()] for text in (output, expected))
    return len(lines) == len(others) and all(len(a) == len(b) and all(map(same_word, a, b)) for a, b in zip(lines, others, strict=True))


def same_word(word, other):
    """Digits beyond a float's 15 count, and 1_000 is Python, not a number."""
    try:
        return word == other or ("_" not in word and decimal.Decimal(word) == decimal.Decimal(other))
    except decimal.InvalidOperation:
        return False


def plain(value):
    """Tuples as lists: JSON, in which expected values come, has no tuples."""
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return {key: plain(part) for key, part in value.items()} if isinstance(value, dict) else value


# --- the start of a suspect -----------------------------------------------------------------------


def become_suspect(descriptors, limits, role):
    """In the forked child: descriptors, limits, exec. Never returns."""
    try:
        high = {target: os.dup2(source, 100 + target) for target, source in descriptors.items()}
        for target, source in high.items():
            os.dup2(source, target)
        os.closerange(max(descriptors) + 1, 1 << 16)
        seconds = int(limits["seconds"]) + 1
        for kind, limit in (
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_AS, limits["memory"]),
            (resource.RLIMIT_FSIZE, limits["file"]),
            (resource.RLIMIT_NPROC, limits["processes"]),
            (resource.RLIMIT_NOFILE, 64),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (limit, limit + (kind == resource.RLIMIT_CPU)))
        forbid_hidden_memory()
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/work", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", SUSPECT["text"], role], environment)
    finally:
        os._exit(99)


def forbid_hidden_memory():
    """A filter of system calls: without memfd_create, memfd_secret and shmget nobody has memory that counts as no process's."""
    architecture, calls = HIDDEN_MEMORY[os.uname().machine]
    load, equal, at_least, end, refuse = 0x20, 0x15, 0x35, 0x06, len(calls) + 1
    lines = [(load, 0, 0, 4), (equal, 1, 0, architecture), (end, 0, 0, 0x80000000), (load, 0, 0, 0)]  # other architectures are killed
    lines += [(equal, refuse - number, 0, call) for number, call in enumerate(calls)]
    lines += [(at_least, 1, 0, 0x40000000), (end, 0, 0, 0x7FFF0000), (end, 0, 0, 0x00050001)]  # x32 is refused too; EPERM
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    libc("prctl", 22, ctypes.c_ulong(2), struct.pack("HP", len(lines), ctypes.addressof(program)), 0, 0)  # PR_SET_SECCOMP


# --- the keeper -----------------------------------------------------------------------------------


def main():
    """Reads {nonce, job, limits, visible, outside, suspect} from standard input; writes {nonce, outcome, reason} when all is done."""
    order = json.load(sys.stdin)
    exec(order["suspect"], SUSPECT)
    SUSPECT["text"] = order["suspect"]
    results = os.dup(1)

    def report(outcome, reason=""):
        os.write(results, json.dumps({"nonce": order["nonce"], "outcome": outcome, "reason": reason}).encode())

    try:
        libc("prctl", 1, signal.SIGKILL, 0, 0, 0)  # the keeper dies with its master
        separate()
        child = os.fork()
    except OSError as error:
        report("unavailable", str(error))
        return
    if child:
        os.waitpid(child, 0)
        return
    try:
        build_root(order["visible"], order["limits"]["file"] * 2)
        give_up_rights(order["outside"])
    except OSError as error:
        report("unavailable", str(error))
        os._exit(0)
    nowhere = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    try:
        judge(order["job"], order["limits"])
        report(Failed.first or "passed")
    except BaseException:  # an assertion of the tests, or whatever else they raise
        report(Failed.first or "failed")
    os._exit(0)


if __name__ == "__main__":
    main()
