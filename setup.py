"""What pyproject.toml has no words for: prompts, sample studies and constraints travel in the package.

They stand at the top of the checkout, where people look for them, and in a wheel below `plumbline/data/`
(`plumbline.resources` knows both). An installation in place (`pip install -e`) reads the checkout's own.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

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


setup(cmdclass={"build_py": BuildPy})
