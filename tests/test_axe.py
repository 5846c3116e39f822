"""axe-core is fetched from where npm is told to, and is the one whose hash stands in the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests import axe


def test_the_registry_is_npms_own_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, all_users = tmp_path / ".npmrc", tmp_path / "npmrc"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="set npm_config_registry"):
        axe.registry({}, [mine, all_users])
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\n[ "$*" = "config get registry" ] && echo https://own.example.org/\n', encoding="utf-8")
    npm.chmod(0o755)
    assert axe.registry({}, [mine, all_users]) == "https://own.example.org"
    all_users.write_text('fund=false\n registry = "https://npm.example.org/"\n', encoding="utf-8")
    assert axe.registry({}, [mine, all_users]) == "https://npm.example.org"
    mine.write_text(
        "@scope:registry=https://scope.example.org\nregistry=https://mine.example.org/npm/\n", encoding="utf-8"
    )
    assert axe.registry({}, [mine, all_users]) == "https://mine.example.org/npm"
    assert axe.registry({"NPM_CONFIG_REGISTRY": "http://127.0.0.1:1/"}, [mine]) == "http://127.0.0.1:1"


@pytest.mark.browser
def test_it_finds_what_keeps_people_out(page: Page) -> None:
    """In frames too, and of all rules those that are asked for."""
    if not axe.FILE.exists() and not os.environ.get("CI"):
        pytest.skip("accessibility is not looked at; for axe-core: python -m tests.axe")
    pale = "<p style='color: #bbb; background: #fff'>pale</p>"
    page.set_content(f"<html lang=en><title>t</title><main>{pale}<iframe title=f srcdoc='<img src=x>'></iframe></main>")
    assert {line.split(":")[0] for line in axe.grave(page)} >= {"color-contrast", "image-alt"}
    assert {line.split(":")[0] for line in axe.grave(page, ["color-contrast"])} == {"color-contrast"}
