"""src/docs/make_pages.py, which runs the code of the manual's pages (`make docs` runs all of them)."""
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "src" / "docs"))
import make_pages  # noqa: E402

PAGE = """# A page

```python
n = 3
n + 1          # -> 4
```

```sh
echo from the shell          # -> shell
```

<!-- not run: it would fail -->
```sh
false
```
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setattr(make_pages, "HERE", tmp_path)

    def make(text):
        (tmp_path / "page.md").write_text(text)
        return make_pages.Page("page", tmp_path / "out")
    return make


def test_what_a_block_prints_is_below_it(page):
    made = page(PAGE)
    assert "```\n\n```text\n4\n```\n" in made.text and "```\n\n```text\nfrom the shell\n```\n" in made.text
    assert made.ran == 2 and made.left == ["page.md: it would fail"]


@pytest.mark.parametrize("before, after, said", [
    ("n + 1", "n + 2", "the output lacks '4'"), ("echo", "exit 3; echo", "exit code 3"), ("n + 1", "m", "an exception"),
    ("# A page", "![a picture](none.png)", "'none.png', which its code has not made"),
    ("# A page", "`src/none.h`", "'src/none.h', which is not there")])
def test_a_page_that_is_not_true_is_refused(page, before, after, said):
    with pytest.raises(make_pages.Wrong, match=said):
        page(PAGE.replace(before, after))


def test_reference_has_every_key_command_section_and_public_name():
    keys, commands, header, package = (make_pages.REFERENCE[one]() for one in ("keys", "commands", "c", "python"))
    for text, names in ((keys, ["### corpus.path", "### run.retry_seconds"]), (commands, ["## train", "## help"]),
                        (header, ["## Limits", "## Tables by key", "sptx_run_evaluate"]),
                        (package, ["## sptx.fit", "### Run.recommend", "### Run.evaluate", "## sptx.torch.Embedding", "### Embedding.prefetch"])):
        for name in names:
            assert name in text, name
