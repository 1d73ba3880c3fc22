"""Prompt injections of AgentDojo, and its tasks, against the rules about flows of a built program:

    .ci/agentdojo PROGRAM

It needs the packages of `requirements.txt`, and no model: one that obeys every injection is played from the tasks themselves.
It fails if the strictest rules let an injected send or write pass without a question, and if any rule did not ask although its
marks had met.
"""

import signal
import sys
import tempfile
import time
from pathlib import Path

from playing import Conversation
from report import Benign, Injected, Report
from service import Services
from suites import all_suites
from world import SETTINGS, World

# Maximum time of all conversations, in seconds.
LIMIT = 20 * 60


def inject(world, suite, report):
    """Plays each task with each injection that calls something, under each setting."""
    for user in suite.users:
        for injection in suite.injections:
            environment = suite.environment(user, injection)
            if not suite.injected_calls(injection, environment):
                report.left_out += 1
                continue
            for setting in SETTINGS:
                report.add(suite, setting, injection, Conversation(world, suite, setting, environment, user, injection))


def help_out(world, suite, report):
    """Plays each task as it is, under each setting."""
    for user in suite.users:
        environment = suite.environment(user, None)
        for setting in SETTINGS:
            report.add(suite, setting, user, Conversation(world, suite, setting, environment, user))


def stop(*_):
    raise TimeoutError(f"more than {LIMIT} s")


def main():
    program, started = str(Path(sys.argv[1]).resolve()), time.monotonic()
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    injected, benign = Injected(), Benign()
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, program, Services())
        for suite in all_suites():
            world.prepare(suite.functions)
            help_out(world, suite, benign)
            print(f"{suite.name}: {len(suite.users)} tasks, {time.monotonic() - started:.0f} s", flush=True)
            inject(world, suite, injected)
            print(f"{suite.name}: {len(suite.injections)} injections, {time.monotonic() - started:.0f} s", flush=True)
    return Report(injected, benign).end()


sys.exit(main())
