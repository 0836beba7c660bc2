"""Shared by the scripts that draw: matplotlib without a screen, error messages of one sentence, and files that are written whole."""
import io
import os
import sys

DPI = 150


def stop(sentence):
    sys.exit(f"{os.path.splitext(os.path.basename(sys.argv[0]))[0]}: {sentence}")


def pyplot():
    """Returns matplotlib.pyplot, set up to draw to files; equal pictures give equal bytes."""
    try:
        import matplotlib
    except ImportError:
        stop("matplotlib is missing; build/venv/bin/python has it after make check")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sptx-w2v"
    import matplotlib.pyplot as plt
    return plt


def plain(text):
    """Escapes text so that matplotlib writes it as it is: a $ would begin a formula."""
    return text.replace("$", r"\$")


def format_of(out):
    """Returns the format of a picture, which the end of its file name chooses."""
    ending = os.path.splitext(out)[1][1:].lower()
    if ending not in ("png", "svg", "pdf"):
        stop(f"'{out}' should end in .png, .svg or .pdf")
    return ending


def save(figure, out):
    """Draws to memory, writes a file beside `out`, and renames it to `out`: so an incomplete picture is never there. Prints its name."""
    ending, picture = format_of(out), io.BytesIO()
    figure.savefig(picture, format=ending, dpi=DPI, metadata={"Date": None} if ending == "svg" else None)
    try:
        with open(out + ".partial", "wb") as file:
            file.write(picture.getvalue())
        os.replace(out + ".partial", out)
    except OSError as error:
        if os.path.isfile(out + ".partial"):
            os.remove(out + ".partial")
        stop(f"cannot write '{out}': {error.strerror}")
    print(out)
