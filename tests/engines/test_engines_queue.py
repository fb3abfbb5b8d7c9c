"""The order in which waiting requests start, and that they wait for room: what both engines share."""

from ibtpo.engines.base import Continuation, Queue, Request


class OneByOne(Queue):
    """Runs one request at a time and notes the order."""

    def __init__(self):
        super().__init__(max_model_len=64)
        self.started = []

    _accept = Queue._enqueue

    def step(self):
        request = self._next()
        self.started.append(request.id)
        return self._done([Continuation(request.id, (1,), (-0.1,), True)])


def test_what_goes_on_with_a_response_starts_first_and_the_longest_before_all():
    engine = OneByOne()
    for name, generated in [("new a", 0), ("new b", 0), ("short", 3), ("long", 9), ("new c", 0), ("also short", 3)]:
        engine.submit(Request(name, (1,) * 12, 4, seed=0, generated=generated))
    engine.step()
    engine.submit(Request("later and longest", (1,) * 20, 4, seed=0, generated=19))
    while engine.pending:
        engine.step()
    assert engine.started == ["long", "later and longest", "short", "also short", "new a", "new b", "new c"]
