"""Tables as people have them (CSV, TSV): the program chooses columns by the first lines and prints its choice, or refuses."""
import re

import pytest

QUICK = ("--model.dim=4", "--train.epochs=1", "--device.threads=1", "--device.backend=cpu")


def train(sptx, text, format, *settings, run="run", name="file"):
    sptx.path(name).write_text(text, encoding="utf-8")
    return sptx("train", f"--corpus.path={name}", f"--corpus.format={format}", f"--run.dir={run}", "--overwrite", *QUICK,
                *(["--negatives.count=2", "--negatives.exclude=no"] if format in ("lists", "pairs") else []), *settings)


def words(sptx, run="run"):
    return dict(line.rsplit("\t", 1) for line in sptx.path(run, "vocab.tsv").read_text(encoding="utf-8").splitlines())


def said(done):
    found = re.findall(r"^columns    (.*)$", done.stderr, re.M)
    assert len(found) == 1, done.stderr
    return found[0]


def refused(sptx, text, format, *settings):
    sptx.path("file").write_text(text, encoding="utf-8")
    sentence = sptx.refuses("train", "--corpus.path=file", f"--corpus.format={format}", "--run.dir=run", *QUICK, *settings)
    assert not sptx.path("run", "latest").exists()
    return sentence


CITIES = [("New York", "Paris"), ("Los Angeles", "Rome"), ("Paris", "San Juan"), ("Rome", "New York")]


@pytest.mark.parametrize("between, quote, after", [
    ("\t", "", ""), (",", "", ""), (";", "", ""), ("|", "", ""), ("::", "", ""), (" ", '"', " 2"), (",", '"', ",2"), ("\t", '"', "\t2")])
def test_names_with_blanks_are_one_node(sptx, between, quote, after):
    text = "".join(f"{quote}{a}{quote}{between}{quote}{b}{quote}{after}\n" for a, b in CITIES)
    done = train(sptx, text, "graph")
    assert set(words(sptx)) == {city for edge in CITIES for city in edge}
    assert "weight = column 3" in said(done) if after else "weight = none" in said(done)


def test_a_triple_is_no_edge(sptx):
    text = "aspirin\ttreats\tpain\nibuprofen\tinhibits\tcox\nrain\tcauses\tflood\n"
    assert "looks like a triple (head, relation, tail): its third column is no weight" in refused(sptx, text, "graph")
    train(sptx, text, "graph", "--corpus.columns=1,3")
    assert set(words(sptx)) == {"aspirin", "pain", "ibuprofen", "cox", "rain", "flood"}
    train(sptx, text, "graph", "--graph.weights=no")
    assert set(words(sptx)) == {"aspirin", "treats", "ibuprofen", "inhibits", "rain", "causes"}


def test_decimal_commas(sptx):
    for text, name in (("1;2;1,5\n2;3;2\n3;1;1\n", "semicolons"), ("1 2 1,5\n2 3 2\n3 1 1\n", "blanks"), ("1\t2\t1,5\n2\t3\t2\n3\t1\t1\n", "tabs")):
        done = train(sptx, text, "graph")
        assert set(words(sptx)) == {"1", "2", "3"} and said(done).endswith(f"{name}, no header, decimal commas")
    whole = train(sptx, "1;2;1.5\n2;3;2\n3;1;1\n", "graph", run="points")
    assert "decimal" not in whole.stderr and sptx.tables("points") == sptx.tables("run")


def test_what_networkx_writes(sptx):
    train(sptx, "a b 3\nb c 1\nc a 1\n", "graph", run="wanted")
    done = train(sptx, "a b {'weight': 3, 'kind': 'x y'}\nb c {'weight': 1}\nc a {}\n", "graph")
    assert sptx.tables() == sptx.tables("wanted") and "networkx' attributes" in said(done)


@pytest.mark.parametrize("header, rows, lists, items", [
    ('"Person","item"', ['1,"citrus fruit"', "1,milk", "2,milk"], {"1", "2"}, {"citrus fruit", "milk"}),
    ("playlist_id,track_uri", ["0,t:aa", "0,t:bb", "1,t:aa"], {"0", "1"}, {"t:aa", "t:bb"}),
    ("TransactionID,Product", ["1,bread", "1,milk", "2,milk"], {"1", "2"}, {"bread", "milk"}),
    ("用户,电影", ["1,甲", "1,乙", "2,乙"], {"1", "2"}, {"甲", "乙"}),
    ("Member_number,Date,itemDescription", ["1808,21-07-2015,tropical fruit", "1808,22-07-2015,milk", "2552,05-01-2015,milk"],
     {"1808", "2552"}, {"tropical fruit", "milk"}),
    (",user,item", ["0,ann,x", "1,ann,y", "2,bob,y"], {"ann", "bob"}, {"x", "y"}),
])
def test_headers_are_no_data(sptx, header, rows, lists, items):
    done = train(sptx, "\n".join([header, *rows]) + "\n", "pairs")
    found = words(sptx)
    assert {word[5:] for word in found if word.startswith("list:")} == lists
    assert {word for word in found if not word.startswith("list:")} == items
    assert said(done).endswith("commas, a header")


SHOP = """invoice_no,sku,description,quantity,invoice_date,unit_price,customer_id,country
1,s1,"cup, white",6,12/1/2010,2.55,c1,UK
1,s2,plate,1,12/1/2010,3.39,c1,UK
2,s1,"cup, white",2,12/2/2010,2.55,c2,France
"""


def test_a_shops_columns(sptx):
    done = train(sptx, SHOP, "pairs")
    assert said(done) == "list = customer_id, item = sku, rating = quantity; commas, a header"
    assert "quantity 1 to 6 found: all count alike" in done.stderr
    done = train(sptx, SHOP, "pairs", "--corpus.columns=customer_id,description", run="other")
    assert said(done) == "list = customer_id, item = description, rating = none of 8; commas, a header"
    assert set(words(sptx, "other")) == {"cup, white", "plate", "list:c1", "list:c2"}
    by_number = train(sptx, SHOP, "pairs", "--corpus.columns=7,3", run="numbers")
    assert sptx.tables("numbers") == sptx.tables("other") and said(by_number) == said(done)
    assert "corpus.columns = 7,3" in sptx.path("numbers", "config.ini").read_text().replace("columns = 7,3", "corpus.columns = 7,3")


def test_columns_that_nothing_tells(sptx):
    assert "nothing tells which columns are wanted: 1,2,3,4,5" in refused(sptx, "1,2,3,4,5\n6,7,8,9,10\n", "pairs")
    assert "corpus.columns" in refused(sptx, "ann,likes,rye\nbob,likes,milk\n", "pairs")


BASKETS = ["b1,whole milk,rye bread,butter", "b2,whole milk,butter", "b3,rye bread,butter"]


@pytest.mark.parametrize("between", [",", "\t", ";", "|"])
def test_items_of_baskets_keep_their_blanks(sptx, between):
    done = train(sptx, "".join(f"{line.replace(',', between)}\n" for line in BASKETS), "lists")
    assert set(words(sptx)) == {"whole milk", "rye bread", "butter", "list:b1", "list:b2", "list:b3"}
    assert said(done).startswith("list = the first, items = the others; ")


def test_baskets_without_names(sptx):
    text = "milk,rye bread\nrye bread,milk\nyogurt\nmilk,yogurt,rye bread\nmilk\nrye bread,yogurt\n"
    done = train(sptx, text, "lists")
    assert {word: count for word, count in words(sptx).items() if not word.startswith("list:")} == {"milk": "4", "rye bread": "4", "yogurt": "3"}
    assert {word for word in words(sptx) if word.startswith("list:")} == {f"list:{n}" for n in range(1, 7)}
    assert "each list is named by its line's number" in said(done)
    train(sptx, text, "lists", "--corpus.names=yes", run="named")
    assert words(sptx, "named")["milk"] == "1"
    few = train(sptx, "citrus fruit,margarine\nyogurt,coffee\nwhole milk,yogurt\n", "lists", "--corpus.names=no", run="few")
    assert words(sptx, "few")["citrus fruit"] == "1" and "named by its line's number" in said(few)


def test_json_is_no_table(sptx):
    lines = '{"user": "a", "item": "b"}\n{"user": "c", "item": "d"}\n'
    for format in ("pairs", "lists", "graph", "adjacency"):
        assert "holds JSON" in refused(sptx, lines, format)
    sptx.path("file").write_text(lines * 10)
    done = sptx("train", "--corpus.path=file", "--corpus.min_count=1", "--run.dir=text", *QUICK)
    assert "are JSON, which is read as words with its braces and quotes" in done.stderr


def test_text_that_is_lists_edges_or_a_table(sptx):
    for text, hint in (("".join(f"{n} a{n % 3} b{n % 2} c\n" for n in range(30)), "corpus.format = lists"),
                       ("".join(f"{n} {n * 7 % 31}\n" for n in range(30)), "corpus.format = graph"),
                       ("".join(f"u{n},b{n % 5},{n % 5}\n" for n in range(30)), "corpus.format = pairs")):
        sptx.path("file").write_text(text)
        done = sptx("train", "--corpus.path=file", "--corpus.min_count=1", "--run.dir=run", "--overwrite", *QUICK, expect=None)
        assert done.stderr.count("warning: the lines of 'file'") == 1 and hint in done.stderr


def test_latin_1_is_said_once_with_its_line(sptx):
    sptx.path("file").write_bytes("a b c\nb c a\ncaf\xe9 a b\nna\xefve c\n".encode("latin-1") * 9)
    done = sptx("train", "--corpus.path=file", "--corpus.min_count=1", "--run.dir=run", *QUICK)
    assert done.stderr.count("encoding   line 3 of 'file' is not UTF-8") == done.stderr.count("encoding ") == 1


def test_few_words_say_what_min_count_left_out(sptx):
    sentence = refused(sptx, "a a a a a b c d\n" * 1, "text", "--corpus.min_count=5")
    assert "left out the other 3 words of the corpus" in sentence
    assert "a text without blanks is one word" in refused(sptx, "今天天气很好\n" * 5, "text")


def test_held_out_files_are_read_in_the_runs_own_format(sptx):
    """evaluate reads a run's training file as pairs again, although blanks in its names could make it look like lists."""
    lines = [f'{user},"ready {kind} soup"' for user in range(40) for kind in ("a", "b", "c", "d", "e") if (user + ord(kind)) % 3]
    train(sptx, "".join(f"{line}\n" for line in lines), "pairs")
    sptx.path("held").write_text("".join(f'{user},"ready {kind} soup"\n' for user in range(40) for kind in "abcde"
                                         if not (user + ord(kind)) % 3))
    done = sptx("evaluate", "run", "--train=file", "--held-out=held", "--k=5")
    assert "recall@5 1.0000" in done.stdout and " lists 40 " in done.stdout and "as lists" not in done.stderr
    told = sptx("recommend", "run", "--lists=file", "--name=3", "--k=2").stdout
    assert all(line.split("\t")[1].startswith("ready ") for line in told.splitlines()) and told


def test_labels_titles_and_word_pairs_have_headers_commas_and_quotes(sptx):
    edges = "".join(f"n{a} n{b}\n" for a in range(12) for b in range(a) if a % 2 == b % 2)
    train(sptx, edges, "graph")
    plain = "".join(f"n{a}\t{'odd one' if a % 2 else 'even one'}\n" for a in range(12))
    sptx.path("plain").write_text(plain)
    sptx.path("table").write_text('node,when,"class"\n' + "".join(f'n{a},2020,"{"odd one" if a % 2 else "even one"}"\n' for a in range(12)))
    scores = [sptx("evaluate", "run", f"--labels={name}", "--share=0.5").stdout.split(" ", 1)[1] for name in ("plain", "table")]
    assert scores[0] == scores[1] and "labels 2" in scores[0]
    sptx.path("titles.csv").write_text('id,title\nn2,"Two, the second"\nn4,Four, the fourth\n')
    sptx.path("titles.dat").write_text("n2::Two, the second::x\nn4::Four, the fourth::y\n")
    for name in ("titles.csv", "titles.dat"):
        found = sptx("nearest", "run", "n0", "--k=11", f"--titles={name}").stdout
        assert "Two, the second" in found and "Four" in found and "title" not in found.replace("titles", "")
    pairs = [("n0", "n2", 9), ("n0", "n1", 1), ("n2", "n4", 8), ("n3", "n6", 2)]
    sptx.path("pairs.csv").write_text("Word 1,Word 2,Human (mean)\n" + "".join("%s,%s,%s\n" % pair for pair in pairs))
    sptx.path("pairs.txt").write_text("".join("%s %s %s\n" % pair for pair in pairs))
    rho = [sptx("evaluate", "run", f"--pairs={name}").stdout.split(" ", 1)[1] for name in ("pairs.csv", "pairs.txt")]
    assert rho[0] == rho[1] and "covered 4/4" in rho[0]


@pytest.mark.parametrize("format, between", [("pairs", ","), ("graph", "\t"), ("graph", " ")])
def test_a_missing_value_of_a_database_is_no_name_in_any_line(sptx, format, between):
    lines = [f"a{i % 50}{between}b{i % 7}" for i in range(2100)]
    said = refused(sptx, "\n".join([*lines, f"a1{between}\\N", *lines]) + "\n", format)
    what = "item" if format == "pairs" else "target"
    assert said == f"'file' line 2101: its {what} is \\N, which databases write where a value is missing; remove such lines"


def test_planetoids_features_are_no_labels(sptx):
    train(sptx, "".join(f"n{i} n{(i + 1) % 30}\nn{i} n{(i + 2) % 30}\n" for i in range(30)), "graph")
    sptx.path("content").write_text("".join(f"n{i}\t{i % 2}\t{i // 2 % 2}\t0\tclass{i % 3}\n" for i in range(30)))
    done = sptx("evaluate", "run", "--labels=content", "--share=0.5")
    assert "name = column 1, label = column 5; tabs, no header" in done.stderr
    sptx.path("labels").write_text("".join(f"n{i}\tclass{i % 3}\n" for i in range(30)))
    assert done.stdout.split()[1:] == sptx("evaluate", "run", "--labels=labels", "--share=0.5").stdout.split()[1:]
