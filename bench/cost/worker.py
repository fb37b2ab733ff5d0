"""Talks with convtranspose-worker (tools/tune/worker_main.cpp): one JSON object a line, each way."""
import json
import subprocess


class WorkerEnded(Exception):
    """The worker ended, or refused a question."""


class Worker:
    def __init__(self, program, runner=()):
        self.command = [*runner, str(program)]
        self.process = None

    def ask(self, **question):
        if not self.process:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process = None  # the next question starts another one
            raise WorkerEnded(f"the worker ended when it was asked to {question['do']}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerEnded(answer["error"])
        return answer
