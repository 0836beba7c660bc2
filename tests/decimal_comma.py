"""A locale with a decimal comma, for the tests of the program and of the Python package."""
import subprocess

import pytest


def environment(directory):
    """Makes de_DE.UTF-8 in the directory, and returns the variable by which the C library finds it there."""
    try:
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", directory / "de_DE.UTF-8"], capture_output=True)
    except FileNotFoundError:
        pytest.skip("localedef is not here")
    if made.returncode:
        pytest.skip("localedef cannot make de_DE here")
    return {"LOCPATH": str(directory)}
