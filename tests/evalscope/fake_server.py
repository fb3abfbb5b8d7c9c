"""A server that looks like vLLM's and needs no model: `python fake_server.py --log FILE --served-model-name NAME --host H --port P`.

Its answers depend on prompt and seed alone. Each one is logged, a line of JSON a request. `--mode`: fails at the start, hangs (never
answers), refuses, dies (after 5 answers), slow (0.2 s an answer), ok.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
for option in ("--log", "--served-model-name", "--host"):
    parser.add_argument(option, required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--mode", default="ok")
arguments, _ = parser.parse_known_args()


def answer(messages: list[dict], seed: int) -> str:
    question = messages[-1]["content"]
    if "multiple choice" in question:
        return f"Perhaps it is B.\nANSWER: {'ABCD'[seed % 4]}"
    if "def " in question:
        return "```python\ndef double(x):\n    return x * 2\n```" if seed % 2 else "```python\ndef double(x):\n    return x\n```"
    return f"It is \\boxed{{{seed % 2}}}." if "\\boxed" in str(messages) else "a small river bends"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply({"data": [{"id": arguments.served_model_name}]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if arguments.mode == "refuse":
            return self.reply({"error": {"message": "maximum context length is 8 tokens", "code": 400}}, 400)
        if arguments.mode == "slow":
            time.sleep(0.2)
        with open(arguments.log, "a") as log:
            log.write(json.dumps(request) + "\n")
        if arguments.mode == "dies" and len(Path(arguments.log).read_text().splitlines()) > 5:
            os._exit(1)
        text = answer(request["messages"], request["seed"])
        cut = request["seed"] % 5 == 0
        ids = [len(word) for word in text.split()]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "length" if cut else "stop",
            "token_ids": ids,
        }
        usage = {"prompt_tokens": 3, "completion_tokens": len(ids), "total_tokens": 3 + len(ids)}
        self.reply({"id": "x", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice], "usage": usage})

    def reply(self, content: dict, status: int = 200) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


if arguments.mode == "fails":
    sys.exit("no memory left")
if arguments.mode == "hangs":
    time.sleep(600)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])  # as vLLM's engine: a process of its own
Path(f"{arguments.log}.pids").write_text(f"{os.getpid()} {child.pid}")
ThreadingHTTPServer((arguments.host, arguments.port), Handler).serve_forever()
