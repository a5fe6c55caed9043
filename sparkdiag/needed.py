"""Outside programs that must be installed, asked for before their absence is taken for something else."""

import shutil

from sparkdiag.errors import EnvironmentFault


def need_git(why: str) -> None:
    """Raises ``EnvironmentFault`` where no git is installed; ``why`` ends the sentence "it is needed ..."."""
    if shutil.which("git") is None:
        raise EnvironmentFault(
            f"git is not installed (or not on PATH), and it is needed {why}",
            remedy="install git, for example: apt install git",
        )
