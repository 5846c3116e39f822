"""The rating page with a store of its own, for tests: what is asked, what the page saves, and a network that fails.

desk = Desk(page, questions, texts)         # an item for each of `texts`
desk.begin()                                # past the instructions
desk.down = True                            # every call is cut off; or `desk.status = 401`: every save is refused so
desk.saved["i0"]                            # the last answer of an item: values, status, seconds
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from playwright.sync_api import Page, Route, expect

from annotation.page.task import direction, rating_words
from annotation.server.plugin.plumbline_argilla import rate

URL = "http://rate.test/"
_STORE = """
const call = async (name, body) => {
  const answer = await fetch(name, {method: "POST", body: JSON.stringify(body)});
  if (!answer.ok) throw Object.assign(new Error(name), {status: answer.status});
  return answer.json();
};
let at = 0;
call("task").then(({task, items}) => start(task, {
  key: "study queue rater",
  next: async n => { await call("next"); const more = items.slice(at, at + n); at += more.length; return more; },
  save: (id, values, status, seconds) => call("save", {id, values, status, seconds}),
  progress: () => call("progress"), previous: id => call("previous", id), end: () => call("end"),
}));
"""


class Desk:
    """A rater at the page."""

    def __init__(
        self, page: Page, questions: Sequence[Mapping[str, Any]], texts: Sequence[Sequence[Any]], **changes: Any
    ) -> None:
        self.page, self.complaints = page, list[str]()
        self.items = [{"id": f"i{number}", "texts": list(shown)} for number, shown in enumerate(texts)]
        self.task = task(questions, len(self.items[0]["texts"]), **changes)
        self.saved: dict[str, dict[str, Any]] = {}
        self.log: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.down, self.status, self.hanging = False, 200, list[Route]()
        self.hang = ""  # the name of calls that get no answer
        self.queues = ""  # what several queues are called, over which progress is
        self.visit(page)

    def visit(self, page: Page) -> None:
        """Open the page, in a tab."""
        self.page = page
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                self.complaints.append(message.text)
                if message.type == "error" and "Failed to load resource" not in message.text
                else None
            ),
        )
        page.route("**/*", self._serve)
        page.goto(URL)

    def begin(self) -> None:
        """Past the instructions."""
        self.page.locator("#begin").click()
        self.turn(1)

    def turn(self, number: int) -> None:
        """Wait for an item, by its number."""
        expect(self.page.locator("#turn")).to_have_text(f"Pair {number} of {len(self.items)}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def settle(self, item: str, status: str = "submitted") -> dict[str, Any]:
        """Wait until an item's answer has arrived; its values."""
        for _ in range(400):
            if self.saved.get(item, {}).get("status") == status:
                break
            self.page.wait_for_timeout(25)
        assert self.saved.get(item, {}).get("status") == status, self.log
        values: dict[str, Any] = self.saved[item]["values"]
        return values

    def answer_hanging(self) -> None:
        """Answer the calls that got no answer, one after another, and hang no more."""
        self.hang = ""
        for route in self.hanging:
            self._serve(route)
        self.hanging.clear()

    def _serve(self, route: Route) -> None:
        name = route.request.url.removeprefix(URL)
        self.calls.append(name)
        if not name:
            route.fulfill(body=html(self.task), content_type="text/html; charset=utf-8")
        elif name == self.hang:
            self.hanging.append(route)
        elif self.down and name != "task":
            route.abort()
        elif self.status != 200 and name in ("save", "next"):
            route.fulfill(status=self.status, body="{}")
        else:
            route.fulfill(body=json.dumps(self._answer(name, route.request.post_data_json)))

    def _answer(self, name: str, body: Any) -> Any:
        done = [item["id"] for item in self.items if self.saved.get(item["id"], {}).get("status", "draft") != "draft"]
        if name == "task":
            answers = [{**item, "answer": self.saved.get(item["id"])} for item in self.items if item["id"] not in done]
            return {"task": self.task, "items": answers}
        if name == "save":
            self.log.append(body)
            self.saved[body["id"]] = {key: body[key] for key in ("values", "status", "seconds")}
        if name == "previous":
            before = itertools.takewhile(lambda item: item["id"] != body, self.items)
            own = [item for item in before if item["id"] in done]
            return {**own[-1], "answer": self.saved[own[-1]["id"]]} if own else None
        progress = {"done": len(done), "total": len(self.items), "of": self.queues}
        return {"progress": progress, "end": {"text": "That is all."}}.get(name)


def html(shown: Mapping[str, Any]) -> str:
    """The page as a server sends it, with a policy that lets its own scripts run alone."""
    policy = "default-src 'none'; style-src 'nonce-x'; script-src 'nonce-x'; connect-src 'self'; base-uri 'none'"
    return rate.document(
        shown["name"],
        shown["language"],
        shown["direction"],
        shown["words"]["no_script"],
        head=f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<style nonce="x">{rate.source("rate.css")}</style>',
        foot=f'<script nonce="x">{rate.source("rate.js")}</script><script nonce="x">{_STORE}</script>',
    )


def task(
    questions: Sequence[Mapping[str, Any]], texts: int = 2, language: str = "en", **changes: Any
) -> dict[str, Any]:
    """A task that asks these questions."""
    words = rating_words(language) | {"examples": "Examples", "right": "What is right", "why": "Why", "open": "Open"}
    whole = {
        "version": 1,
        "study": "study",
        "queue": "queue",
        "name": "Formal politeness, German",
        "language": language,
        "direction": direction(language),
        "words": words,
        "title": "Formal politeness",
        "about": "What was asked",
        "asked": "The program was asked for a polite text.",
        "guidelines": "## Formal politeness\n\nRead **both** texts.\n\n- **1** rude\n- **5** polite",
        "examples": [],
        "contact": "lab@example.org",
        "consent": "",
        "texts": [
            {"name": f"text{place}", "title": title, "lang": language, "dir": direction(language)}
            for place, title in enumerate(("Original", "New text", "A third")[:texts])
        ],
        "questions": [{"hint": "", "required": True, "points": [], **question} for question in questions],
        "comment": {"name": "comment", "title": "Comment", "most": 2000},
        "unable": {
            "title": words["cannot"],
            "reasons": [words[name] for name in ("no_language", "damaged", "another")],
        },
    }
    return whole | changes
