"""The page of a run: its lists are those of `nearest`, it loads nothing from a network, and its controls work in a browser."""
import base64
import json
import re
import struct

import pytest

import browser
from conftest import Program, sentences

needs_browser = pytest.mark.skipif(not browser.find(), reason="no Chromium; on Debian scripts/setup.sh --tests installs one")
HOSTILE = ["</script><script>document.title='broken'</script>", "\"><img/src=x>", "'quoted'", "__proto__", "&lt;b&gt;",
           "\u202eback", "a\\u0022", "\x01\x02", "\ufeff"]


def shown(path):
    """Returns what a page shows, with its lists as {number of the row: [(number, score in millionths), ..]}."""
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))
    near, scores = base64.b64decode(data["near"]), base64.b64decode(data["scores"])
    near, scores = struct.unpack(f"<{len(near) // 4}I", near), struct.unpack(f"<{len(scores) // 4}i", scores)
    k = data["k"]
    data["lists"] = {row: list(zip(near[row * k:row * k + k], scores[row * k:row * k + k])) for row in range(data["listed"])}
    return data


def nearest(program, *words, options=()):
    """Returns for each word [(word, score as printed), ..]."""
    answers = program("nearest", "run", *options, "--", *words, timeout=300).stdout.split("\n\n")
    lines = [[line for line in answer.split("\n") if "\t" in line] for answer in answers]
    return [[tuple(line.split("\t")) for line in answer] for answer in lines]


# ---- the file ----

def test_lists_are_those_of_nearest(trained):
    done = trained("report", "run", "--out=page.html", "--top=40", "--search=100")
    assert "wrote 'page.html': " in done.stderr and done.stdout == ""
    data = shown(trained.path("page.html"))
    counts = [line.split("\t") for line in trained.path("run", "vocab.tsv").read_text().splitlines()]
    assert data["names"][:100] == [word for word, count in counts[:100]]
    assert data["counts"][:100] == [int(count) for word, count in counts[:100]]
    answers = nearest(trained, *data["names"][:100])
    for row, answer in enumerate(answers):
        assert [(data["names"][other], f"{score / 1e6:.6f}") for other, score in data["lists"][row]] == answer


@pytest.mark.parametrize("table", ["context", "normsum"])
def test_another_table(trained, table):
    trained("report", "run", "--out=page.html", f"--table={table}", "--top=10", "--search=30")
    data = shown(trained.path("page.html"))
    assert data["table"] == table
    for row, answer in enumerate(nearest(trained, *data["names"][:30], options=[f"--query={table}", f"--among={table}"])):
        assert [(data["names"][other], f"{score / 1e6:.6f}") for other, score in data["lists"][row]] == answer


def test_items_of_lists_with_rows_are_contexts(sptx):
    """Only the target table has rows of lists. In it the rows of items were never trained, so items are shown by the context
    table."""
    lines = [f"l{i} {line}" for i, line in enumerate(sentences(300))]
    sptx.path("corpus.txt").write_text("\n".join(lines) + "\n")
    sptx("train", sptx.config(corpus={"format": "lists"}, examples={"mode": "user"}))
    sptx("report", "run", "--out=page.html")
    data = shown(sptx.path("page.html"))
    assert data["table"] == "context" and data["listed"] < data["rows"] - 299
    assert "\n# columns    list = the first, items = the others; blanks, no header\n" in data["config"]
    assert not [name for name in data["names"] if name.startswith("list:")]
    answers = nearest(sptx, *data["names"][:20], options=["--query=context", "--among=context"])
    for row, answer in enumerate(answers):
        assert [(data["names"][other], f"{score / 1e6:.6f}") for other, score in data["lists"][row]] == answer


def test_the_same_run_makes_the_same_page(trained):
    trained("report", "run", "--out=one.html", "--top=60", "--device.threads=1")
    trained("report", "run", "--out=two.html", "--top=60", "--device.threads=2")
    page = trained.path("one.html").read_bytes()
    assert page == trained.path("two.html").read_bytes()
    assert trained("report", "run", "--out=/dev/stdout", "--top=60").stdout.encode() == page
    assert not [name for name in trained.directory.iterdir() if name.name.endswith(".partial")]


def test_it_asks_for_nothing(trained):
    trained("report", "run", "--out=page.html", "--top=30")
    page = trained.path("page.html").read_text()
    assert "default-src 'none'" in page and "connect-src" not in page
    assert set(re.findall(r"\bhttps?://[^\s\"']*", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not re.search(r"<(link|img|iframe|object|embed)\b|\bsrc=|\bstyle=|\bon\w+=|@import|url\(", page)


def test_titles_and_what_evaluate_said(trained):
    words = [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()]
    trained.path("titles.tsv").write_text("".join(f"{word}\tBook & \"{word}\"\n" for word in words[1:]))
    trained.path("pairs.txt").write_text("".join(f"{words[i]} {words[i + 1]} {i}\n" for i in range(40)))
    said = trained("evaluate", "run", "--pairs=pairs.txt").stdout
    trained.path("said.txt").write_text(said)
    trained("report", "run", "--out=page.html", "--top=30", "--titles=titles.tsv", "--evaluation=said.txt",
            "--evaluation=said.txt")
    data = shown(trained.path("page.html"))
    assert data["evaluations"] == [said, said] and "rho" in said
    assert data["titles"][:2] == [None, f'Book & "{words[1]}"']


def test_clusters_are_what_was_planted(sptx):
    """The corpus has ten topics. Nearly every cluster must contain words of one topic only."""
    sptx("train", sptx.config(train={"epochs": "20"}))
    sptx("report", "run", "--out=page.html", "--top=200")
    data = shown(sptx.path("page.html"))
    of, groups = base64.b64decode(data["groups"]["of"]), {}
    assert data["groups"]["by"] == "clusters" and data["groups"]["names"] == [] and len(of) == 200 and of[0] == 0
    for row, group in enumerate(of):
        groups.setdefault(group, []).append(data["names"][row][:2])
    assert list(groups) == list(range(data["groups"]["count"])) and 10 <= len(groups) <= 12
    assert sum(max(map(topics.count, topics)) for topics in groups.values()) >= 190


def test_the_map_is_coloured_by_labels(trained):
    words = [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()]
    lines = [f"{word} train label{i % 7} label0" for i, word in enumerate(words[:50])] + ["stranger label9", words[0] + " label9"]
    trained.path("labels.tsv").write_text("\n".join(lines) + "\n")
    trained("report", "run", "--out=page.html", "--top=60", "--labels=labels.tsv")
    groups = shown(trained.path("page.html"))["groups"]
    assert groups["by"] == "labels" and groups["names"] == ["label0"] + [f"label{i}" for i in range(1, 7)]
    assert list(base64.b64decode(groups["of"])) == [i % 7 for i in range(50)] + [255] * 10
    trained.path("labels.tsv").write_text("".join(f"{word}\tl{max(0, i - 5)}\n" for i, word in enumerate(words[:30])))
    trained("report", "run", "--out=page.html", "--top=60", "--labels=labels.tsv")
    groups = shown(trained.path("page.html"))["groups"]
    assert groups["names"] == [f"l{i}" for i in range(11)] + ["14 other labels"] and groups["count"] == 12
    assert list(base64.b64decode(groups["of"]))[:30] == [0] * 6 + list(range(1, 11)) + [11] * 14


@pytest.mark.parametrize("arguments, code, sentence", [
    (["report", "run", "--out=x", "--labels=nowhere"], 1, "cannot open 'nowhere': No such file or directory"),
    (["report", "run", "--out=x", "--labels=run/config.ini"], 1, "'run/config.ini' line 1 is a comment; remove such lines"),
    (["report"], 2, "report wants one run directory, 0 given; see 'sptx-w2v help report'"),
    (["report", "run", "run", "--out=x"], 2, "report wants one run directory, 2 given; see 'sptx-w2v help report'"),
    (["report", "run"], 2, "report wants --out=FILE; see 'sptx-w2v help report'"),
    (["report", "run", "--out=x", "--top=0"], 2, "report: --top = '0' is not a whole number from 1 to 20,000"),
    (["report", "run", "--out=x", "--top=20001"], 2, "report: --top = '20001' is not a whole number from 1 to 20,000"),
    (["report", "run", "--out=x", "--search=many"], 2, "report: --search = 'many' is not a whole number from 1 to 1,000,000"),
    (["report", "run", "--out=x", "--model.dim=5"], 2,
     "report has no use for '--model.dim=5': its keys are those of the sections device, memory; see 'sptx-w2v help report'"),
    (["report", "run", "--out=run/vocab.tsv"], 1,
     "--out = 'run/vocab.tsv' is a file of the run in 'run', which would be lost: choose another"),
    (["report", "run", "--out=no/page.html"], 1, "cannot write 'no/page.html': No such file or directory"),
    (["report", "nowhere", "--out=x"], 1, "there is no run directory 'nowhere'"),
    (["report", "run", "--out=x", "--table=both"], 2, "'both' is not a table; wanted target, context, sum, normsum or propagated"),
    (["report", "run", "--out=x", "--titles=nowhere"], 1, "cannot open 'nowhere': No such file or directory"),
    (["report", "run", "--out=x", "--evaluation=nowhere"], 1, "cannot open 'nowhere': No such file or directory"),
])
def test_what_is_wrong_is_said_in_one_sentence(trained, arguments, code, sentence):
    said = trained.refuses(*arguments, code=code)
    assert sentence in said.replace(str(trained.directory) + "/", ""), said
    assert not [name for name in trained.directory.iterdir() if name.name.endswith(".partial") or name.name == "x"]


def test_a_run_that_left_nothing_but_its_checkpoint(trained):
    trained.path("run", "metrics.jsonl").unlink()
    trained.path("run", "config.ini").unlink()
    trained("report", "run", "--out=page.html", "--top=30")
    data = shown(trained.path("page.html"))
    assert data["config"] == "" and data["history"]["trained"]["loss"] == []


# ---- the page in a browser ----

@pytest.fixture(scope="module")
def window(tmp_path_factory):
    window = browser.Browser(tmp_path_factory.mktemp("browser"))
    yield window
    window.close()


@pytest.fixture
def page(window):
    """A browser window. After the test there must be no message on the console, and no request except for the page itself."""
    window.said.clear()
    window.asked.clear()
    yield window
    assert window.said == []
    assert [url for url in window.asked if not url.startswith(("file:", "about:"))] == []


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A run with a held-out loss, and its page."""
    program = Program(tmp_path_factory.mktemp("reported"))
    program.path("corpus.txt").write_text("\n".join(sentences(2000)) + "\n")
    program("train", program.config(train={"held_out": "0.1", "epochs": "4"}))
    program.path("said.txt").write_text("pairs rho 0.5000 covered 4/4\n")
    program("report", "run", "--out=page.html", "--top=120", "--search=240", "--evaluation=said.txt")
    return program


def listed(page):
    """Returns the nearest rows that the page shows: [(name, score), ..]."""
    return [tuple(pair) for pair in page.run(
        "[...document.querySelectorAll('#nearest li')].map((li) => [li.querySelector('.name').textContent,"
        " li.querySelector('.score').textContent])")]


def text_of(page, name):
    return page.run(f"document.getElementById('{name}').textContent")


def focused(page):
    """Returns the id of the element that has the focus or, without an id, its text."""
    return page.run("document.activeElement.id || document.activeElement.textContent")


@needs_browser
def test_a_search_shows_what_nearest_prints(page, reported):
    page.open(reported.path("page.html"))
    data = shown(reported.path("page.html"))
    for word in ("t0w0", "t3w1", data["names"][239]):
        page.run("document.activeElement.blur()")
        page.key("/")
        assert focused(page) == "search"
        page.type(word)
        assert listed(page) == nearest(reported, word)[0]
        assert f"sptx-w2v nearest run {word}" in text_of(page, "command")


@needs_browser
def test_keys(page, reported):
    page.open(reported.path("page.html"))
    page.key("/")
    page.type("t3")
    matches = page.run("[...document.querySelectorAll('#matches li')].map((li) => li.textContent)")
    assert len(matches) == 8 and all(match.startswith("t3") for match in matches)
    selected = "document.querySelector('#matches [aria-selected=true]').textContent"
    assert page.run(selected) == matches[0]
    page.key("ArrowDown")
    page.key("ArrowDown")
    page.key("ArrowUp")
    assert page.run(selected) == matches[1]
    wanted = nearest(reported, matches[1])[0]
    assert listed(page) == wanted
    page.key("Enter")
    page.settle()
    assert page.run("document.activeElement.querySelector('.name').textContent") == wanted[0][0]
    assert page.run("document.activeElement.matches(':focus-visible')")
    page.key("ArrowDown")
    assert page.run("document.activeElement.querySelector('.name').textContent") == wanted[1][0]
    page.key("End")
    page.key("ArrowDown")
    assert page.run("document.activeElement.querySelector('.name').textContent") == wanted[-1][0]
    page.key("Home")
    page.key("Enter")
    page.settle()
    assert listed(page) == nearest(reported, wanted[0][0])[0]
    assert page.run("document.getElementById('search').value") == wanted[0][0]
    page.run("history.back()")
    page.run("new Promise((done) => setTimeout(done, 300))")
    assert listed(page) == wanted
    page.run("document.querySelector('#nearest button').focus()")
    page.key("Escape")
    assert focused(page) == "search"
    page.key("Escape")
    assert page.run("document.getElementById('search').value") == "" and page.run("document.getElementById('answer').hidden")


@needs_browser
def test_tabs_reach_everything_in_order(page, reported):
    page.open(reported.path("page.html"))
    stops = []
    for _ in range(9):
        page.key("Tab")
        stops.append(page.run("document.activeElement.id || document.activeElement.dataset.do || document.activeElement.tagName"))
        assert page.run("document.activeElement.matches(':focus-visible')")
    # BUTTON: the button of the first group
    assert stops == ["A", "theme", "search", "BUTTON", "map", "in", "out", "all", "SUMMARY"]


@needs_browser
def test_a_row_that_the_page_does_not_have(page, reported):
    page.open(reported.path("page.html"))
    page.key("/")
    page.type("nobody's")
    assert listed(page) == []
    assert "No row of this page is called so. It holds the 240 most frequent of" in text_of(page, "message")
    assert text_of(page, "message").endswith("sptx-w2v nearest run 'nobody'\\''s'")
    data = shown(reported.path("page.html"))
    rare = data["names"][240]
    page.key("Escape")
    page.type(rare)
    assert f"{rare} is not among the 240 most frequent rows" in text_of(page, "message") and listed(page) == []


@needs_browser
def test_light_and_dark(page, reported):
    back = "getComputedStyle(document.body).backgroundColor"
    page.open(reported.path("page.html"))
    light = page.run(back)
    page.dark(True)
    page.settle()
    dark = page.run(back)
    assert light != dark and text_of(page, "theme") == "Light"
    dots = page.run("document.getElementById('map').toDataURL()")
    page.run("document.getElementById('theme').click()")
    page.settle()
    assert page.run(back) == light and text_of(page, "theme") == "Dark"
    assert page.run("document.getElementById('map').toDataURL()") != dots
    page.run("document.getElementById('theme').click()")
    assert page.run(back) == dark
    page.run("localStorage.clear()")


@needs_browser
def test_curves(page, reported):
    page.open(reported.path("page.html"))
    told = page.run("[...document.querySelectorAll('#charts svg')].map((svg) => svg.getAttribute('aria-label'))")
    assert [label.split(":")[0] for label in told] == ["Training loss a pair", "Pairs a second", "Learning rate"]
    assert "Held-out loss: " in told[0]
    assert page.run("document.querySelectorAll('#charts circle.held-out').length") == 4  # one circle for each epoch
    held_out = [json.loads(line)["held_out_loss_pair"] for line in reported.path("run", "metrics.jsonl").read_text().splitlines()
                if "held_out" in line]
    assert f"held out {held_out[-1]:.4g}" in text_of(page, "charts")
    assert "pairs rho 0.5000 covered 4/4" in text_of(page, "evaluation")
    assert "held_out0.1" in text_of(page, "keys")


@needs_browser
def test_the_map(page, reported):
    page.open(reported.path("page.html"))
    picture = "document.getElementById('map').toDataURL()"
    whole = page.run(picture)
    # Finds a dot of the map: the first pixel of the canvas that has a colour, in coordinates of the window.
    x, y = page.run("""(() => {
      const canvas = document.getElementById('map'), box = canvas.getBoundingClientRect();
      const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      for (let i = 0; i < pixels.length; i += 4)
        if (pixels[i + 3] > 150 && Math.max(...pixels.slice(i, i + 3)) > Math.min(...pixels.slice(i, i + 3)) + 60)
          return [box.left + i / 4 % canvas.width, box.top + Math.floor(i / 4 / canvas.width) + 1];
    })()""")
    page.mouse("mouseMoved", x, y)
    name, times = text_of(page, "map-tip").split(" \u00b7 ")
    data = shown(reported.path("page.html"))
    assert times == f"{data['counts'][data['names'].index(name)]:,} times" and data["names"].index(name) < 120
    page.mouse("mousePressed", x, y)
    page.mouse("mouseReleased", x, y)
    page.settle()
    assert listed(page) == nearest(reported, name)[0]
    page.run("document.getElementById('map').focus()")
    seen = [whole]
    for key in ("+", "ArrowLeft", "ArrowUp", "-"):
        page.key(key)
        page.settle()
        seen.append(page.run(picture))
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
    page.settle()
    seen.append(page.run(picture))
    assert len(set(seen)) == len(seen)
    page.key("Escape")
    page.key("0")
    page.key("/")
    page.key("Escape")
    page.mouse("mouseMoved", 2, 2)
    page.settle()
    assert page.run(picture) == whole


@needs_browser
def test_the_map_says_what_its_colours_are(page, reported):
    page.open(reported.path("page.html"))
    data = shown(reported.path("page.html"))
    legend = """[...document.querySelectorAll('#groups li')].map((li) => [li.querySelector('bdi').textContent,
        li.querySelector('small').textContent, getComputedStyle(li.querySelector('span')).backgroundColor])"""
    said = page.run(legend)
    of = list(base64.b64decode(data["groups"]["of"]))
    assert data["groups"]["by"] == "clusters" and len(said) == data["groups"]["count"] and "clusters" in text_of(page, "map-help")
    for group, (name, count, _) in enumerate(said):
        rows = [row for row in range(120) if of[row] == group]
        named = [data["names"].index(word) for word in name.split(", ")]
        assert len(named) == min(3, len(rows) - len(rows) // 2) and set(named) <= set(rows[:len(rows) - len(rows) // 2]) and count == str(len(rows))
    assert len({colour for _, _, colour in said}) == len(said) > 5
    labels = "".join(f"{word} <b>{word[1]}</b> other\n" for word in data["names"][:100])
    reported.path("labels").write_text(labels)
    reported("report", "run", "--out=labels.html", "--top=120", "--search=240", "--labels=labels")
    page.open(reported.path("labels.html"))
    said = page.run(legend)
    assert sorted(name for name, _, _ in said) == sorted({f"<b>{word[1]}</b>" for word in data["names"][:100]})
    assert "labels" in text_of(page, "map-help") and sum(int(count) for _, count, _ in said) == 100


@needs_browser
def test_fingers_on_the_map(page, reported):
    page.open(reported.path("page.html"), 390, 844)
    page.ask("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    page.run("document.getElementById('map').scrollIntoView({block: 'center'})")
    left, top, width, height = page.run("(({left, top, width, height}) => [left, top, width, height])"
                                        "(document.getElementById('map').getBoundingClientRect())")
    picture = "document.getElementById('map').toDataURL()"
    seen = [page.run(picture)]

    def touch(kind, *points):
        page.ask("Input.dispatchTouchEvent", type=kind, touchPoints=[
            {"x": left + width / 2 + x, "y": top + height / 2, "id": i} for i, x in enumerate(points)])

    for moves in ([(-30, 30), (-60, 60), (-90, 90)], [(0,), (40,)]):  # two fingers that move apart, then one that moves along
        touch("touchStart", *moves[0])
        for move in moves[1:]:
            touch("touchMove", *move)
        touch("touchEnd")
        page.settle()
        seen.append(page.run(picture))
    page.ask("Emulation.setTouchEmulationEnabled", enabled=False)
    assert len(set(seen)) == 3
    assert page.run("document.getElementById('answer').hidden")  # neither gesture counts as a tap


@needs_browser
@pytest.mark.parametrize("width", [320, 390, 800])
def test_a_narrow_window_needs_no_scrolling_sideways(page, reported, width):
    page.open(reported.path("page.html"), width, 800)
    page.key("/")
    page.type("t3")
    page.settle()
    assert page.run("document.documentElement.scrollWidth") <= width


@needs_browser
def test_hostile_words_are_shown_and_nothing_more(page, tmp_path):
    program = Program(tmp_path)
    lines = [f"{line} {HOSTILE[i % len(HOSTILE)]} {HOSTILE[(i + 1) % len(HOSTILE)]}" for i, line in enumerate(sentences(500))]
    program.path("corpus.txt").write_bytes("\n".join(lines).encode() + b"\n" + b"\xff\xfe t0w0 t0w1 \xff\xfe\n" * 9)
    program("train", program.config(train={"epochs": "1"}))
    program.path("titles").write_bytes(b"t0w0\t<b>bold</b>\nt0w1\t\xc3(\n")
    program("report", "run", "--out=page.html", "--titles=titles")
    page.open(program.path("page.html"))
    data = shown(program.path("page.html"))
    assert set(HOSTILE) <= set(data["names"]) and "\ufffd\ufffd" in data["names"]
    assert page.run("document.title").startswith("run") and page.run("document.images.length") == 0
    assert page.run("document.querySelectorAll('script').length") == 2
    for word in HOSTILE:
        page.run(f"location.hash = encodeURIComponent({json.dumps(word)})")
        page.settle()
        row = data["names"].index(word)
        wanted = nearest(program, word)[0]
        assert [score for name, score in listed(page)] == [score for name, score in wanted]
        assert [f"{score / 1e6:.6f}" for other, score in data["lists"][row]] == [score for name, score in wanted]
        assert page.run("document.querySelector('#asked bdi').textContent.trim().length") > 0
    page.run("location.hash = 't0w1'")
    page.settle()
    assert page.run("document.title").startswith("run") and page.run("document.images.length") == 0


@needs_browser
def test_the_page_lets_nothing_out_or_in(window, reported):
    window.open(reported.path("page.html"))
    window.run("""(() => {
      window.refused = [];
      document.addEventListener('securitypolicyviolation', (event) => refused.push(event.effectiveDirective));
    })()""")
    assert window.run("fetch('http://127.0.0.1:9/').then(() => 'out', () => 'kept')") == "kept"
    window.run("new Image().src = 'http://127.0.0.1:9/x.png'")
    window.run("new Promise((done) => setTimeout(done, 200))")
    assert {"connect-src", "img-src"} <= set(window.run("refused"))
    window.said.clear()
