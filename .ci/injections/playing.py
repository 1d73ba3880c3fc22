"""Plays one conversation: the calls of a task, and after the first result with an injection those of a model that obeys it.

Each call goes through the program. AgentDojo's environment changes only if the program carried it out.
"""

import json
from urllib.parse import quote, urlencode

from client import NO, YES, Client
from mapping import Effects
from suites import MARK, copied

# A call that is stopped in its middle is asked about when it is repeated.
MAX_ATTEMPTS = 3


class Played:
    """One call of a conversation and what became of it."""

    def __init__(self, function, effects, is_injected):
        self.function, self.effects, self.is_injected = function, effects, is_injected
        # Texts of the questions; whether the first attempt was stopped in its middle; whether the call was carried out.
        self.questions, self.was_stopped, self.is_done = [], False, False
        # What had really been read before the call, and in it: private data, text of others.
        self.private, self.others = False, False


class Conversation:
    """Calls of one conversation in an environment."""

    def __init__(self, world, suite, setting, environment, user, injection=None):
        self.world, self.suite, self.user = world, suite, user
        self.before, self.environment = copied(environment), copied(environment)
        self.calls, self.done, self.wrong = [], [], []
        self.private = self.others = self.is_reached = False
        world.show(self.environment)
        with Client(world, setting) as client:
            self.client = client
            for call in suite.user_calls(user, self.environment):
                result = self.play(call, False)
                if injection and MARK in result and not self.is_reached:
                    self.is_reached = True
                    for injected in suite.injected_calls(injection, self.environment):
                        self.play(injected, True)

    def play(self, call, is_injected):
        """Makes a call, once more if it was stopped, and returns its result for the model."""
        effects = Effects(call.function, call.args, self.world.shown)
        played = Played(call.function, effects, is_injected)
        self.calls.append(played)
        changes = effects.post or effects.write or call.function == "get_webpage"
        after = copied(self.environment) if changes else self.environment
        result = self.suite.run(after, call)
        arguments = self.arguments(call, effects)
        self.world.services.page = result
        for _ in range(MAX_ATTEMPTS):
            answer = self.client.call(call.function, arguments, NO if is_injected else YES)
            played.questions += answer.questions
            self.verify(call, effects, answer)
            if not answer.asks_for_repetition:
                break
            played.was_stopped = True
        played.private = self.private or effects.reads_private_files
        played.others = self.others or effects.reads_files_of_others
        if answer.is_error:
            if not answer.is_denied:
                self.wrong.append(f"{call.function}: {answer.outcome}: {answer.text[:300]}")
            return ""
        self.private, self.others = self.private or effects.reads_private, self.others or effects.reads_of_others
        if MARK in result and (effects.read or effects.get) and MARK not in answer.text.replace("\\u003c", "<"):
            self.wrong.append(f"{call.function}: the injection did not pass the program")
        played.is_done = True
        self.done.append(call)
        if changes:
            self.environment = after
            self.world.show(after)
        return result

    def arguments(self, call, effects):
        """Returns the arguments of the tool: places as it sees them, and the call that it sends and writes."""
        addresses = self.world.services.addresses
        inside = lambda places: [place.split("/", 1)[1] for place in places]
        query = urlencode(sorted((name, json.dumps(value)) for name, value in call.args.items()), quote_via=quote)
        return {
            "read": inside(effects.read),
            "get": [f"{addresses[service]}/{call.function}?{query}" for service in effects.get],
            "post": [f"{addresses[service]}/{call.function}" for service in effects.post],
            "write": inside(effects.write),
            "answer": inside(effects.answer),
            "call": {"function": call.function, "arguments": json.loads(json.dumps(call.args, default=str))},
        }

    def verify(self, call, effects, answer):
        """Compares what the program said with what the services and the files got."""
        got, changed = self.world.services.take(), self.world.changed(effects.write)
        sent = [service for service, method in got if method == "POST"]
        asked = [service for service, method in got if method == "GET"]
        if answer.is_error and (sent or changed or asked):
            self.wrong.append(f"{call.function}: an effect of a call that failed: {got}, {changed}: {answer.text[:200]}")
        if not answer.is_error and (sent, asked, changed) != (effects.post, effects.get, effects.write):
            self.wrong.append(f"{call.function}: effects are missing: {got}, {changed}, not {vars(effects)}")
        self.wrong += [f"{call.function}: a wrong secret: {wrong}" for wrong in self.world.services.wrong]
        self.world.services.wrong.clear()
