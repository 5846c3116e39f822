"""What `annotation status` imports: it is asked often, and looks at no server that does not run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from plumbline.study import ROOT
from tests.test_layout import SLOW

RECORDED = ROOT / "tests" / "recorded"
OF_RECORDS = {"numpy", "pandas", "pyarrow", "pydantic"}  # in which every record is read


def test_a_status_imports_what_reads_records_and_nothing_of_servers_or_other_commands(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "exports", tmp_path / "exports")
    study = ["--study", str(RECORDED / "study" / "recorded.yaml"), "--exports", str(tmp_path / "exports")]
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "annotation",
        "status",
        *study,
        "--data",
        str(tmp_path / "home"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "could not be asked (it does not run)" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert imported & SLOW == OF_RECORDS
    assert not {"annotation.campaign_commands", "annotation.argilla.publish", "markdown_it", "rich"} & imported
