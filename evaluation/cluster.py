"""`--ray` of evaluations: the models of a study on the nodes of a running Ray cluster.

Processes on the nodes have a model each (hands) and encode its texts in shards, every text once; the command keeps what
comes back, shard by shard. Scores are made on the command's machine, where the embeddings are, in as many processes
(desks) as there is work for. What dies is begun again by another; what cannot be done ends its model, with the reason.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from tqdm import tqdm

from evaluation.models.distant import Desk, Finished, GivenUp, Question, Rows
from evaluation.models.shards import Asked, Shard
from evaluation.seats import command_cpus, on_node, seats_of
from evaluation.teams import TRIES, DeskAt, HandAt, Team, death, engaged, idle_for, key_of, line_of
from evaluation.work import Ended, Job, quiet
from generation.ray_session import join, without
from plumbline.errors import PlumblineError
from plumbline.study import Study

AHEAD = 2  # shards that a hand is given at a time, so that it never waits
DESKS = 2  # for each hand: while one waits for embeddings, another scores
LOOK_SECONDS = 5.0  # nodes come and go
CLOSE_SECONDS = 5.0


def spread(address: str, study: Study, jobs: Sequence[Job]) -> Generator[tuple[Job, Any]]:
    """What the Ray cluster at an address (`auto`: this machine's) makes of jobs, as it comes; the last is its `Ended`.

    Never starts a cluster. A model that cannot be had, that fails, or that processes die over, ends with the reason;
    the others go on. Raises StudyError without the package ray, ServiceError where there is no cluster, or no room.
    """
    ray = join(address)
    with contextlib.ExitStack() as ends:
        ends.callback(ray.shutdown)
        crew = _Crew(ray, study, jobs)
        ends.callback(crew.end)
        while not crew.done:
            with without(contextlib.redirect_stdout):  # Ray's pages on what has died
                found = crew.step()
            yield from found


class _Crew:
    """All that is at work, as the command sees it: what is awaited, and what happens when it comes (`_calls`)."""

    def __init__(self, ray: Any, study: Study, jobs: Sequence[Job]) -> None:
        self._ray, self._study, self._lost = ray, study, ray.exceptions.RayError
        self._specs = [job.model.spec for job in jobs]
        self._calls: dict[Any, Callable[[Any], None]] = {}
        self._found: list[tuple[Job, Any]] = []
        self._hands: list[HandAt] = []
        self._desks: list[DeskAt] = []
        self._seats, self._looked = seats_of(ray, study), time.monotonic()
        self._most = max(1, min(DESKS * len(self._seats), command_cpus(ray)))
        self.teams: list[Team] = []
        for job in jobs:
            try:
                self.teams.append(Team.of(study, job))
            except PlumblineError as error:
                self._found.append((job, Ended(failure=str(error))))

    @property
    def done(self) -> bool:
        """Whether all models have come to their end, and it was told."""
        return not self.teams and not self._found

    def step(self) -> list[tuple[Job, Any]]:
        """Have everybody at work, wait for something to come, and take it; what was made."""
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._seats, self._looked = seats_of(self._ray, self._study), time.monotonic()
        self._hire()
        self._hand_out()
        ready, _ = self._ray.wait(list(self._calls), timeout=LOOK_SECONDS) if self._calls else ([], [])
        for one in ready:
            self._calls.pop(one)(one)
        self._dissolve()
        found, self._found = self._found, []
        return found

    def end(self) -> None:
        """End all processes; those that are at work at once."""
        free = [hand.actor for hand in self._hands if hand.ready and not hand.shards]
        free += [desk.actor for desk in self._desks if desk.team is None]
        if free:
            self._ray.wait([one.close.remote() for one in free], num_returns=len(free), timeout=CLOSE_SECONDS)
        for actor in [one.actor for one in self._hands] + [one.actor for one in self._desks]:
            self._ray.kill(actor)
        for team in self.teams:
            team.shards.close()

    def _hire(self) -> None:
        """Put a hand on each seat that is free, for the model that has fewest; and desks, as many as have work."""
        taken = {hand.seat for hand in self._hands}
        for seat in [one for one in self._seats if one not in taken]:
            teams = [team for team in self.teams if seat.serves(team.job.model.spec) and seat not in team.unusable]
            if teams := [team for team in teams if not team.failure]:
                hand = engaged(self._ray, self._study, seat, min(teams, key=lambda team: len(team.hands)))
                self._hands.append(hand)
                self._calls[hand.actor.facts.remote()] = partial(self._loaded, hand)
        for team in [one for one in self.teams if not one.hands and not one.failure]:
            if not team.may_have(self._seats):
                self._fail(team, "no node of the cluster can have it; see `ray status`")
            elif idle := idle_for(team, self._hands):
                self._release(idle)
        wanted = min(self._most, sum(len(team.todo) + team.going for team in self.teams))
        while len(self._desks) < wanted:
            at = on_node(self._ray.get_runtime_context().get_node_id())
            actor = self._ray.remote(Desk).options(num_cpus=0, **at).remote(self._study, self._specs, quiet)
            self._desks.append(DeskAt(actor))

    def _hand_out(self) -> None:
        """Give shards to hands, questions to those who can answer, and pieces to desks."""
        for team in self.teams:
            ready = [hand for hand in team.hands if hand.ready]
            while ready:
                hand = min(ready, key=lambda one: len(one.shards))
                shard = team.shards.next(len(team.hands)) if len(hand.shards) < AHEAD else None
                if shard is None:
                    break
                hand.shards.append(shard)
                way = team.ways.get(shard.prompt)
                call = hand.actor.encode.remote(shard.texts, shard.prompt, shard.role, way)
                self._calls[call] = partial(self._encoded, hand, shard)
            while ready and team.questions:
                place, question = team.questions.pop()
                call = ready[0].actor.answer.options(concurrency_group="asked").remote(question)
                self._calls[call] = partial(self._answered, place, question, ready[0])
        for desk in [one for one in self._desks if one.team is None]:
            teams = [team for team in self.teams if team.facts is not None and team.todo and team.hands]
            if teams:
                team = min(teams, key=lambda one: one.going)
                desk.team, desk.piece = team, team.todo.popleft()
                team.going += 1
                make = team.job.pieces[desk.piece]
                call = desk.actor.begin.remote(make, team.facts, team.job.model.spec.name)
                self._calls[call] = partial(self._stepped, desk)

    def _loaded(self, hand: HandAt, call: Any) -> None:
        """A hand has its model."""
        if (facts := self._from(hand, call)) is not None:
            hand.ready, hand.team.facts = True, hand.team.facts or facts

    def _encoded(self, hand: HandAt, shard: Shard, call: Any) -> None:
        """A shard came back."""
        rows, team = self._from(hand, call, shard), hand.team
        if rows is not None:
            hand.shards.remove(shard)
            self._serve(team, lambda: team.shards.add(shard, rows))

    def _answered(self, place: DeskAt, question: Question, hand: HandAt, call: Any) -> None:
        """A model answered a question; where it died over it, another is asked."""
        team, answer = hand.team, self._from(hand, call)
        if answer is not None:
            said, way = answer
            if way is not None:
                team.ways[said] = way
            if question.repeats:
                team.said[key_of(question)] = said
        if answer is not None or not team.hands:
            self._go_on(place, said if answer is not None else GivenUp())
        else:
            team.questions.append((place, question))

    def _from(self, hand: HandAt, call: Any, shard: Shard | None = None) -> Any:
        """What a hand answered; None where it failed, or is no more."""
        if hand.gone:
            return None
        team, node = hand.team, f"node {hand.seat.address}"
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            team.unusable.add(hand.seat)
            self._dismiss(hand, line_of(error, node), shard)
        except self._lost as error:
            over = hand.shards[0] if hand.shards else None
            team.tries[hand.seat] += over is None
            if team.tries[hand.seat] >= TRIES:
                team.unusable.add(hand.seat)
            times = max(team.tries[hand.seat], over.tries + 1 if over else 0)
            self._dismiss(hand, f"{node}: {death(error, times)}", over)
        return None

    def _dismiss(self, hand: HandAt, why: str, over: Shard | None) -> None:
        """Do without a hand that failed or died over a shard; others encode what it had."""
        team = hand.team
        self._release(hand)
        if over is not None:
            over.tries += 1
        if (over is not None and over.tries >= TRIES) or not (team.hands or team.may_have(self._seats)):
            self._fail(team, why)
            return
        for shard in hand.shards:
            team.shards.put_back(shard)
        if not team.hands:  # others may need the desks before there is a seat again
            self._give_up(team)
        tqdm.write(f"{team.job.model.name}: {why}; it goes on", file=sys.stderr)

    def _release(self, hand: HandAt) -> None:
        """End a hand's process."""
        idle = hand.ready and not hand.shards and not hand.gone
        hand.gone = True
        self._hands.remove(hand)
        hand.team.hands.remove(hand)
        if idle:
            hand.actor.close.remote()
            hand.actor.__ray_terminate__.remote()
        else:
            self._ray.kill(hand.actor)

    def _stepped(self, place: DeskAt, call: Any) -> None:
        """A desk wants something, or has made its piece."""
        team = place.busy
        try:
            step = self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            self._free(place, team)
            if not isinstance(error.cause, GivenUp):
                self._fail(team, line_of(error, "the command's machine"))
            elif not team.failure:
                team.todo.appendleft(place.piece)
        except self._lost as error:
            self._desks.remove(place)
            self._free(place, team)
            team.tries[place.piece] += 1
            if team.tries[place.piece] >= TRIES:
                self._fail(team, death(error, TRIES))
            elif not team.failure:
                team.todo.appendleft(place.piece)
        else:
            self._take(place, team, step)

    def _take(self, place: DeskAt, team: Team, step: Rows | Question | Finished) -> None:
        if isinstance(step, Finished):
            self._found.append((team.job, step.made))
            team.asked += step.asked
            self._free(place, team)
        elif team.failure:
            self._go_on(place, GivenUp())
        elif isinstance(step, Rows):
            asked = Asked(step.texts, step.prompt, step.role)
            team.waiting[asked] = place
            self._serve(team, lambda: team.shards.ask(asked))
        elif step.repeats and (key := key_of(step)) in team.said:
            self._go_on(place, team.said[key])
        else:
            team.questions.append((place, step))

    def _serve(self, team: Team, change: Callable[[], None]) -> None:
        """Change what is kept, or asked, and hand rows to those who waited for them."""
        try:
            if not team.failure:
                change()
            for asked, rows in team.shards.done():
                if asked in team.waiting:
                    self._go_on(team.waiting.pop(asked), rows)
        except PlumblineError as error:
            self._fail(team, str(error))

    def _go_on(self, place: DeskAt, answer: Any) -> None:
        self._calls[place.actor.go_on.remote(answer)] = partial(self._stepped, place)

    def _free(self, place: DeskAt, team: Team) -> None:
        """A desk has nothing to do any more."""
        team.going -= 1
        place.team = None

    def _fail(self, team: Team, reason: str) -> None:
        """End a model, with the reason; what was made before stays."""
        if team.failure:
            return
        team.failure = reason
        team.todo.clear()
        team.shards.drop()
        for hand in list(team.hands):
            self._release(hand)
        self._give_up(team)

    def _give_up(self, team: Team) -> None:
        """Free the desks that wait for a model."""
        for place in (*team.waiting.values(), *(place for place, _ in team.questions)):
            self._go_on(place, GivenUp())
        team.waiting.clear()
        team.questions.clear()

    def _dissolve(self) -> None:
        """See which models have come to their end."""
        for team in [team for team in self.teams if not team.todo and not team.going]:
            self._found.append((team.job, Ended(team.asked, team.shards.encoded, team.failure)))
            self.teams.remove(team)
            for hand in list(team.hands):
                self._release(hand)
            team.shards.close()
