"""A CPU does its work at once."""

from __future__ import annotations

import torch

from qkv.training.queue import AtOnce


def test_work_is_done_on_what_was_given_before_put_returns() -> None:
    place, answer = [torch.zeros(3), torch.zeros(2)], torch.zeros(2)

    def work() -> None:
        answer.copy_(torch.stack([place[0].sum(), place[1].prod()]))

    queue = AtOnce()
    given = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0])]
    wait = queue.put(given, place, work, answer)
    assert answer.tolist() == [6.0, 20.0]
    assert wait() == ([6.0, 20.0], 0.0)


def test_an_answer_stays_what_it_was_when_the_next_work_is_put() -> None:
    place, answer = [torch.zeros(1)], torch.zeros(1)
    queue = AtOnce()

    def work() -> None:
        answer.copy_(place[0])

    waits = [queue.put([torch.tensor([float(number)])], place, work, answer) for number in (1, 2, 3)]
    queue.wait()
    assert [wait().numbers for wait in waits] == [[1.0], [2.0], [3.0]]
    assert waits[0]().numbers == [1.0]
