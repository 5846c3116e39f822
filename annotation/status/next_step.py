"""The next step of a study: one function decides it for `status`, for every command that ends a step, and for reports.

A step is a command that can be pasted. Where a person has to act first, its words say so, and the command shows what
they need or checks for what they did. A step that is done does not come again, unless what it rests on has changed.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from annotation.campaign.offering import LEDGER, REHEARSED, CampaignName, ledgers
from annotation.records import NO_REASON
from annotation.status.progress import DASHBOARD, PEOPLE_REPORT, REHEARSING, Stage
from annotation.status.status import Status
from annotation.verdicts.counted import never_lines
from plumbline.models import batch
from plumbline.records import ARGILLA
from plumbline.words import count

_NAMED = 6  # verdicts, above which their number is given


@dataclass(frozen=True)
class NextStep:
    """The next step of a study: a command to paste (empty where no command helps), and what to know about it."""

    command: str
    words: str = ""

    def __str__(self) -> str:
        """The command in a line, and below it the words."""
        return f"{self.command}\n  {self.words}" if self.command and self.words else self.command or self.words


def next_step(status: Status) -> NextStep:
    """Return the next step."""
    if status.rules_changed and status.sources:
        return _amend(status)
    came_whole = bool(status.sources) and status.stages["transformations"].state == "not yet"
    if came_whole and (step := _rate(status) or _before_scores(status)):
        return step  # an import has pairs and ratings; outputs are needed for scores alone
    return _make(status) or _offer(status) or _pay(status) or _name(status) or _rate(status) or _judge(status)


def _amend(status: Status) -> NextStep:
    """Return the step after a change of the rules that raters' answers are judged by."""
    if status.lasting:
        words = f"after you have undone the change of the rules, or given the new study another name: {status.lasting}"
        return NextStep(status.command("status"), words)
    words = "the rules changed after the first rating: give the reason, which every report shows, or undo the change"
    return NextStep(f"{status.command('accept')} --amend {NO_REASON}", words)


def _before_scores(status: Status) -> NextStep | None:
    """Return the command for an import's missing verdicts or report; None if only scores are left."""
    stages = {name: stage for name, stage in status.stages.items() if name in ("verdicts", "report")}
    step = _after(replace(status, stages=stages))
    return step or (_judge(status) if status.stages["scores"].state == "done" else None)


def _make(status: Status) -> NextStep | None:
    """Return the next step up to a sample that raters can be asked about; None after it."""
    state = {name: stage.state for name, stage in status.stages.items()}
    in_batch, generate = batch.batch_path(status.study).exists(), status.command("generate")
    lacking = state["transformations"] != "done" or (in_batch and not status.begun)
    if lacking or (state["texts"] == "stale" and status.study.judging.transforms):
        if not in_batch:
            return NextStep(generate)
        options, words = batch.next_step(status.study)
        return NextStep(f"{generate} {options}", words)
    judging = status.study.judging
    if state["texts"] == "not yet" and not judging.transforms and judging.first_command != "sample":
        return NextStep(status.command(judging.first_command))
    return _draw(status) or (None if status.begun else _never(status))


def _draw(status: Status) -> NextStep | None:
    """Return the next step towards the study's sample; None if it is drawn."""
    stage, sample = status.stages["sample"], status.command("sample")
    extend = f"{sample} --extend {shlex.quote(stage.reason)}"
    if stage.state == "not yet":
        planned = "plan" in status.ended or "plan" in status.study.judging.refusals
        words = "shows how many pairs and raters are needed; change `sample` and `raters` in the study as you like"
        return NextStep(sample) if planned else NextStep(status.command("plan"), words)
    if stage.state == "under way":
        return NextStep(extend)
    if status.mismatch and status.begun:
        return NextStep(status.command("status"), f"after you {status.mismatch[0].rpartition(';')[2].strip()}")
    if stage.state == "stale" and not status.begun:
        remade = status.mismatch and status.study.judging.transforms
        return NextStep(status.command("generate"), "then `sample`") if remade else NextStep(sample)
    if stage.reason:
        return NextStep(extend, "adds the pairs that the study asks for now; or undo the change of the sample")
    return None


def _offer(status: Status) -> NextStep | None:
    """Return the next step from a sample to people who can rate it; None after it."""
    study, published = status.study, status.stages["published"].state
    refix = status.rules_changed and not status.sources  # they may change before the first rating
    if status.begun and not refix and published != "stale":
        return None
    if not status.begun and status.pages["preview"].state != "done":
        return NextStep(status.command("preview"), "then open the page and try it as raters will")
    if not status.begun and (study.judges or study.judging.model_names()) and "judge" not in status.ended:
        return NextStep(status.command("judge run"))
    by_crowd = not status.begun and "users invite" not in status.ended
    if step := (_ask_crowd(status) if by_crowd else None) or _serve(status) or _invite(status):
        return step
    return NextStep(status.command("publish"))


def _ask_crowd(status: Status) -> NextStep | None:
    """Return the step that asks crowd workers; None where there are no places to offer now."""
    if status.to_launch is None:
        return None
    campaign, cents = status.to_launch
    planned = status.manifest.get("stages", {}).get("crowd plan", {}).get("settings") or {}
    if not status.begun and campaign.made_up and "collect" in status.ended:  # it was rehearsed, and taken out
        live = CampaignName("prolific", "live")
        return NextStep(status.command(live.words("plan")), _go_live(status))
    if not status.begun and planned.get("campaign") != str(campaign):
        words = "shows batches, pay and fees; or, to ask people of your own, take `publish`"
        return NextStep(status.command(campaign.words("plan")), words)
    if campaign.mode == "live" and campaign.platform != "mturk" and (step := _serve(status)):
        return step
    limit = f" --max-cost {math.ceil(cents / 100)}" if campaign.spends else ""
    who = "a made-up crowd, for practice" if campaign.made_up else f"workers ({campaign.label})"
    without = "; the limit suffices for all places, not for bonuses, which `crowd bonus` pays" if limit else ""
    return NextStep(status.command(f"{campaign.words('launch')}{limit}"), f"offers places to {who}{without}")


def _go_live(status: Status) -> str:
    """Return what a person does to ask real workers after a rehearsal."""
    platform = "" if status.study.crowd and status.study.crowd.platform else "name crowd.platform in the study; "
    return (
        f"to ask real workers: {platform}`crowd plan --live` lists the settings and keys that are missing; once none"
        " is, it shows the cost"
    )


def _invite(status: Status) -> NextStep | None:
    """Return the step that invites the people whom the study names; None where that is done."""
    if not status.study.raters.people or "users invite" in status.ended:
        return None
    return NextStep(status.command("users invite"), "makes an account and a letter for each person")


def _serve(status: Status) -> NextStep | None:
    """Return the step that starts the server on which people rate; None if it runs, or if raters are simulated."""
    if status.serves or status.study.raters.simulated:
        return None
    return NextStep(status.command("serve"), "runs until Ctrl-C, so that raters can sign in; go on in another terminal")


def _never(status: Status) -> NextStep | None:
    """Return advice if no answers can decide any undecided group; None if some can."""
    groups, study = status.undecided, status.study
    if not groups or not all(group.lacks(study) for group in groups):
        return None
    imported = not status.evidence.offered
    words = never_lines(study, groups, offered=status.begun, imported=imported)[0]
    if status.begun and (imported or study.raters.blocks or "sample --extend" in study.judging.refusals):
        return NextStep(status.command("status"), words)
    extend = ' --extend "too few could count"' if status.begun else ""
    return NextStep(f"{status.command('sample')}{extend}", words)


def _pay(status: Status) -> NextStep | None:
    """Return the step for crowd workers who wait for a decision or a bonus; None where nobody waits."""
    action, words = status.to_pay
    return NextStep(status.command(action), words) if action else None


def _name(status: Status) -> NextStep | None:
    """Return the step for people with answers whom the study names no longer; None where nothing is to be collected."""
    if not status.unnamed or (status.decided and not status.uncollected):
        return None
    names = f"{'name' if len(status.unnamed) == 1 else 'names'} of {', '.join(status.unnamed)}"
    edit = f"after you have put the {names} under raters.former in {status.study.file}"
    return NextStep(status.command("status"), f"{edit}: until then `collect` stops, since it drops no answers")


def _rate(status: Status) -> NextStep | None:
    """Return the next step while ratings come in; None when verdicts can be or have been reached."""
    if status.uncollected:
        return NextStep(
            collecting(status), f"{count(status.uncollected, 'answer')} on the server that are not collected yet"
        )
    if step := _rehearse(status):
        return step
    if status.stages["collected"].state != "done":
        return _first(status)
    if status.to_look_at or status.unreviewed:
        return _review(status)
    return None if status.decided or not status.evidence.offered else _wait(status)  # none come to an import


def _rehearse(status: Status) -> NextStep | None:
    """Return the step of simulated raters: they answer what was published, and that is collected."""
    if not status.study.raters.simulated or "publish" not in status.ended:
        return None
    last = max((name for name in REHEARSING if name in status.ended), key=lambda name: status.ended[name])
    following = {"publish": "simulate", "simulate": "collect"}.get(last)
    return NextStep(status.command(following)) if following else None


def _first(status: Status) -> NextStep:
    """Return the next step while nothing is collected, or the collected answers are about other pairs."""
    annotators = status.stages["published"].annotators
    if annotators is None and (step := _ask_crowd(status)):
        return step
    if status.sources or annotators is None:
        return NextStep(collecting(status))
    if step := _never(status) or _serve(status) or _invite(status):
        return step
    if not annotators:
        return _find(status, "nobody can rate yet")
    raters = count(annotators, "annotator")
    return _await(status, f"raters have answered: {raters} can")


def _await(status: Status, words: str) -> NextStep:
    """Return the step that shows when raters have answered, or that collects where nothing else shows it."""
    watched = status.server is not None and not status.server.trouble and not ledgers(status.study.scratch / LEDGER)
    command = status.command("status --watch") if watched else collecting(status)
    return NextStep(command, f"{'until' if watched else 'when'} {words}")


def _find(status: Status, words: str, end: str = "") -> NextStep:
    """Return the step that lets raters in, or ends the campaign if all are in whom the study names and that is enough.

    Reports show it: it has no name. `end` are words on what ends the campaign.
    """
    people, invite = status.study.raters.people, status.command("users invite")
    annotators = status.stages["published"].annotators or 0
    if people is None:
        more = 1 if annotators else status.study.raters.per_pair
        names = [f"rater-{number}" for number in range(annotators + 1, annotators + more + 1)]
        return NextStep(f"{invite} {' '.join(names)}", f"{words}; take other names if you like{end}")
    if annotators + int(status.raters["excluded"].sum()) < len(people):
        return NextStep(invite, f"{words}{end}")
    add, groups, after = f"added a person to raters.people in {status.study.file}", status.undecided, _after(status)
    if after and groups and all(group.lacks(status.study) or group.suffices(status.study) for group in groups):
        first = f"verdicts need no more; or first, after you have {add}, take `users invite`"
        return NextStep(after.command, f"{words}, and {first}")
    return NextStep(invite, f"after you have {add}: {words}{end}")


def _wait(status: Status) -> NextStep | None:
    """Return the next step towards answers that can decide something; None if no answers are to come."""
    if step := _never(status) or _ask_crowd(status) or _publish(status):
        return step
    missing = sum(
        group.awaited + group.anew * _from_files(status) for group in status.undecided if not group.lacks(status.study)
    )
    if not missing or (status.simulated and status.nobody_left and status.enough):
        return None
    once = not status.study.raters.blocks and status.stages["verdicts"].state == "not yet"
    rest = _after(status) or next(_last(status), None)
    instead = f"{_named(rest)}{', only once,' if once else ''} does without them" if rest else _nothing(status)
    end = f"; if no more will come, {instead}"
    if status.nobody_left:
        for_them = f"{count(missing, 'answer')} to come for undecided verdicts"
        return _find(status, f"{for_them}, which no present rater can give", end)
    if absent := absent_words(status):
        return _find(status, f"{absent} Those of the others come with `collect`", end)
    which = "are open" if missing == _missing(status) else "undecided verdicts wait for"
    more = f"more of the {count(missing, 'answer')} that {which} have come{end}"
    return (_serve(status) if ARGILLA in status.sources else None) or _await(status, more)


def _named(step: NextStep) -> str:
    """Return a step's command as words name it beside the one to paste: `accept`."""
    return f"`{step.command.removeprefix('plumbline ').partition(' --')[0]}`"


def _publish(status: Status) -> NextStep | None:
    """Return the step that offers raters more pairs; None where there are none to offer."""
    if not status.again and not status.opens:
        return None
    again = f"offers the pairs of {count(status.again, 'answer')} by excluded raters to others"
    return NextStep(status.command("publish"), again if status.again else "opens the next block to raters")


def absent_words(status: Status) -> str:
    """Return a sentence on open answers that are asked of nobody; empty without any."""
    absent = count(status.unanswerable, "answer is", "answers are")
    return f"For undecided verdicts {absent} asked of raters who are not there." if status.unanswerable else ""


def collecting(status: Status) -> str:
    """Return the command that collects the study's answers."""
    last = status.manifest.get("stages", {}).get("collect", {}).get("settings") or {}
    words = [word for name, value in last.items() if value for word in (f"--{name}", value)]
    return (
        f"{status.command('collect')} {shlex.join(words) or '--csv FILE --columns MAPPING'}"
        if _from_files(status)
        else (status.command("collect"))
    )


def _from_files(status: Status) -> bool:
    """Return whether answers come from files alone, so that nothing offers a pair to others but a further file."""
    return bool(status.sources) and ARGILLA not in status.sources and not ledgers(status.study.scratch / LEDGER)


def _review(status: Status) -> NextStep:
    """Return the step that shows raters whom verdicts wait for, or else those with signs, to a person who decides."""
    raters, relation = status.to_look_at, "for whom verdicts wait"
    if not raters:
        raters, relation = status.unreviewed, "with signs and no decision yet"
    about = f"{count(len(raters), 'rater')} {relation}"
    return NextStep(status.command("review"), f"shows {about}: a person decides, by one of the commands that it prints")


def _judge(status: Status) -> NextStep:
    """Return the next step from complete ratings on."""
    if step := _after(status):
        missing, launch = _missing(status), _ask_crowd(status)
        first = f"or first, for {count(missing, 'answer')} still open"
        words = f"{first}, take {_named(launch)}" if missing and launch else ""
        return replace(step, words=words)
    return next(_last(status), None) or NextStep("", _nothing(status))


def _last(status: Status) -> Iterator[NextStep]:
    """Yield the steps that end a crowd campaign, and show and document the results."""
    if status.to_close:
        yield NextStep(status.command(status.to_close), "ends the crowd's campaign: nobody new can begin")
    if status.pages["sheet"].state != "done":
        yield NextStep(status.command("sheet"), "documents the evaluation: HEDS, ARR's checklist, a datasheet")
    rehearsed = REHEARSED in ledgers(status.study.scratch / LEDGER)
    forget = status.command(REHEARSED.words("close --forget"))
    if status.pages[DASHBOARD].state != "done" and status.writes != DASHBOARD:
        end = "" if rehearsed else f"; {_nothing(status)}"
        yield NextStep(status.command(DASHBOARD), f"shows everything in a browser, until Ctrl-C{end}")
    if rehearsed:
        yield NextStep(forget, f"takes the rehearsal out of the study; then, {_go_live(status)}")
    if _exports(status):
        yield NextStep(status.command("export"), _nothing(status))


def _exports(status: Status) -> bool:
    """Return whether the present ratings could be exported and were not."""
    refused = "export" in status.study.judging.refusals
    return bool(status.sources) and not refused and status.pages["export"].state != "done"


def _missing(status: Status) -> int:
    """Return how many answers to pairs are open."""
    return int(status.progress["open"].sum()) if len(status.progress) else 0


def _nothing(status: Status) -> str:
    """Return that the study is finished, how, and where its results are."""
    study, words = status.study, ["the study is finished"]
    if status.judged and status.decided:
        missing = _missing(status)
        unused = f" ({count(missing, 'answer')} that the study asks for would change nothing)" if missing else ""
        words = [f"{words[0]}: all is decided{unused}"]
    elif status.judged:
        names = [name for group in status.undecided for name in group.names]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        undecided = f"{', '.join(names[:_NAMED])}{more}"
        words = [f"{words[0]}: its answers leave {undecided} undecided"]
    if "report" in status.stages and status.stages["report"].state == "done":
        folder = study.folder / "report"
        latex = " and LaTeX" if any(folder.glob("*.tex")) else ""
        words.append(f"read {folder / 'index.html'}, with its tables as CSV{latex} beside it")
    if _exports(status):
        words.append("share the ratings by `plumbline export`")
    return "; ".join(words)


def _after(status: Status) -> NextStep | None:
    """Return the first command after collecting that has not run on the present ratings; None if all have."""
    scored_by = status.study.judging.scored_by
    commands = {"verdicts": "accept", "report": "ratings-report", "scores": scored_by, PEOPLE_REPORT: "human-report"}
    stages: dict[str, Stage] = {commands[name]: status.stages[name] for name in commands if name in status.stages}
    if "report" in status.stages and status.study.judges and "judge" in status.ended:
        stages["judge check"] = status.pages["judge check"]
    scores = status.stages.get("scores")
    if scores is not None and scores.wanted and not status.study.judging.does_tasks:
        stages["scores-report"] = status.pages["scores-report"]
    order = ("accept", "ratings-report", "judge check", scored_by, "scores-report", "human-report")
    lacking = [name for name in order if name in stages and stages[name].state != "done" and name != status.writes]
    command = next(iter(lacking), None)
    return NextStep(status.command(command)) if command else None
