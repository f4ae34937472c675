# SPDX-License-Identifier: Apache-2.0
"""What the rules about scripts run them among: copies of the scripts, and small programs that stand for those that they call."""
import shutil


def program(path, text):
    """A program of bash, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/usr/bin/env bash\n" + text)
    path.chmod(0o755)


def copy_scripts(repository, root, names):
    """Those of the repository's scripts that it has, below another root."""
    (root / "scripts").mkdir(parents=True, exist_ok=True)
    for name in names:
        if (repository / "scripts" / name).exists():
            shutil.copy(repository / "scripts" / name, root / "scripts" / name)
