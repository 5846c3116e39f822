"""Packaging that pyproject.toml cannot express: prompts, studies, constraints and Argilla's server are included.

They are at the top of the checkout, where people look for them, and in a wheel below `plumbline/data/`
(`plumbline.resources` finds both). An editable installation (`pip install -e`) reads the checkout's own.

Equal files give equal archives: nothing in these depends on the time, the user or the umask (`make dist`).
"""

import gzip
import os
import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

#: Listed by name, so that the builder's own studies stay out of the wheel.
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
    """Build the packages and, for a wheel, the files that they include."""

    def _carried(self) -> dict[str, str]:
        """Return the source of each included file, by its target."""
        files = sorted(str(file) for pattern in CARRIED for file in Path().glob(pattern) if file.is_file())
        return {} if self.editable_mode else {f"{self.build_lib}/plumbline/data/{file}": file for file in files}

    def run(self) -> None:
        """Build the packages, and copy the included files."""
        super().run()
        for target, file in self._carried().items():
            self.mkpath(str(Path(target).parent))
            self.copy_file(file, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return the files that are built."""
        return [*super().get_outputs(include_bytecode), *self._carried()]


class Sdist(sdist):
    """A source distribution whose bytes depend only on its files: setuptools would add times, modes and owners."""

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
        time = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))  # 1980, as in wheels: zip has no earlier time

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
