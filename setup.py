"""What pyproject.toml has no words for: prompts, studies, constraints and Argilla's server travel in the package.

They stand at the top of the checkout, where people look for them, and in a wheel below `plumbline/data/`
(`plumbline.resources` knows both). An installation in place (`pip install -e`) reads the checkout's own.

Same files, same bytes: nothing in the archives tells when, by whom or with which umask they were made (`make dist`).
"""

import gzip
import os
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

#: Named, so that a study of somebody who builds the wheel does not travel in it.
CARRIED = [
    "prompts/**/*.yaml",
    "studies/demo.yaml",
    "studies/demo/**/*.*",
    "studies/own.yaml",
    "studies/negation.yaml",
    "studies/own/*.yaml",
    "studies/texts.yaml",
    "studies/texts/*.*",
    "studies/items.yaml",
    "studies/human.yaml",
    "studies/instructions.yaml",
    "studies/instructions/*.*",
    "studies/real/*.yaml",
    "studies/hteb_*.yaml",
    "studies/pteb*.yaml",
    "constraints/argilla-server.txt",
    "packages/argilla-embedded/argilla_embedded/*.py",
]


class BuildPy(build_py):
    """Packages, and in a wheel what they carry."""

    def _carried(self) -> dict[str, str]:
        """Where each file goes, and where it stands."""
        files = sorted(str(file) for pattern in CARRIED for file in Path().glob(pattern) if file.is_file())
        return {} if self.editable_mode else {f"{self.build_lib}/plumbline/data/{file}": file for file in files}

    def run(self) -> None:
        """Build."""
        super().run()
        for target, file in self._carried().items():
            self.mkpath(str(Path(target).parent))
            self.copy_file(file, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What is built."""
        return [*super().get_outputs(include_bytecode), *self._carried()]


class Sdist(sdist):
    """A source distribution whose bytes follow from its files: setuptools keeps their times, modes and owners."""

    def make_archive(
        self,
        base_name: str,
        format: str,  # noqa: A002 (setuptools' names)
        root_dir: str | None = None,
        base_dir: str | None = None,
        owner: str | None = None,
        group: str | None = None,
    ) -> str:
        """Write the archive, with the time that SOURCE_DATE_EPOCH gives."""
        time = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))  # 1980, as wheels have it: zip knows no earlier

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mode = 0o755 if member.isdir() else 0o644
            member.mtime, member.uid, member.gid, member.uname, member.gname = time, 0, 0, "", ""
            return member

        target = Path(f"{base_name}.tar.gz")
        with (
            target.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=time) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(str(base_dir), filter=plain)  # in the order of names
        return str(target)


os.umask(0o022)
setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
