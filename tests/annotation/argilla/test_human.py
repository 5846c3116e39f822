"""Tasks that people do, from the draw to the answers that count, on a real Argilla."""

from __future__ import annotations

import json
from pathlib import Path

from annotation.argilla.client import Argilla
from annotation.argilla.collect import collect
from annotation.argilla.publish import publish
from annotation.argilla.simulate import simulate
from annotation.argilla.workspaces import published
from annotation.human.records import ANSWERS, HumanAnswer
from annotation.human.rehearsing import read_items, rehearsal_of
from annotation.human.tasks import read_tasks
from annotation.sampling.sample import draw_sample
from annotation.verdicts.acceptance import accept
from annotation.verdicts.people import answers_lines
from annotation.verdicts.verdicts import read_verdicts
from plumbline.manifest import read_kept_frame
from tests.annotation.campaigns import answer, rater
from tests.annotation.human.studies import study_of


def test_tasks_from_the_draw_to_answers_that_count(argilla: Argilla, tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        {"data": "classes", "items": 4, "raters": 3},
        {"data": "search", "items": 3, "raters": 2, "candidates": 3, "relevance": "ranked"},
        {"data": "several", "items": 3, "raters": 2},
    )
    draw_sample(study)
    person = rater(argilla, "a-person")
    publish(study, argilla)
    datasets = {queue.pool: one for queue, one in published(study, argilla).items()}
    assert {name: one.distribution["min_submitted"] for name, one in datasets.items()} == {
        "classes": 3,
        "search": 2,
        "several": 2,
    }
    asked = argilla.request("GET", f"/datasets/{datasets['search'].id}/questions")["items"]
    assert [(one["name"], one["settings"]["type"], one["required"]) for one in asked] == [
        ("search", "label_selection", True),
        ("search-order", "ranking", False),
        ("comment", "text", False),
    ]
    records = list(argilla.records(datasets["classes"].id))
    sent = json.dumps(records)
    assert not any(f'"{label}"' in sent for label in read_tasks(study)[0].labels)  # no record names a label

    answer(argilla, person, records[0], "draft", classes="l1")
    answer(argilla, person, records[1], "discarded")
    answer(argilla, person, records[2], "submitted", classes="cannot_tell")
    assert simulate(study, argilla) == 2 * (4 + 3 + 3)
    collect(study, argilla)
    lines = answers_lines(study, accept(study))
    assert lines[0].startswith(
        "classes (classification): 1 of 4 items by 3 raters or more, 4 by any; 3 raters, simulated; cannot tell:"
    )
    assert lines[0].endswith("not counted: drafts 1, discarded 1")
    assert {one.transformation for one in read_verdicts(study)} == {"classes", "search", "several"}

    found = read_kept_frame(study, ANSWERS, HumanAnswer, "annotation accept")
    by_person = found[~found["simulated"]]
    assert by_person[["task", "abstained", "label"]].to_numpy().tolist() == [["classes", True, ""]]
    # What came back through Argilla is what the simulated raters said, item by item.
    rehearsal = rehearsal_of(study)
    made_up = found[found["simulated"]]
    labels = read_tasks(study)[0].labels
    for item in read_items(study):
        own = made_up[(made_up["task"] == item.task) & (made_up["item"] == item.item)]
        said = [rehearsal.answers(one, item.pair_id) for one in study.raters.simulated]
        if item.task == "classes":
            wanted = sorted(
                "" if "cannot_tell" in one["classes"] else labels[int(one["classes"][1:]) - 1] for one in said
            )
            assert sorted(own["label"]) == wanted
        elif item.task == "search":
            assert len(own) == 6 and own["abstained"].sum() == 3 * sum(one["search"] == "cannot_tell" for one in said)
            assert set(own["candidate"]) == set(item.candidates)
            order = own.drop_duplicates("candidate").set_index("candidate")["place"]
            assert [order[name] for name in item.shown] == [1, 2, 3]
