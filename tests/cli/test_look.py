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


# ---- documents ----

TEXTS = [f"{'abc'[i % 3]}{i % 7} the {'abc'[i % 3]}1 sat on {'abc'[i % 3]}{i % 5} again" for i in range(30)]


def documents(sptx, run="run"):
    return [word[5:] for word in words(sptx, run) if word.startswith("list:")]


@pytest.mark.parametrize("text, names, how", [
    ("".join(f"{line}\n" for line in TEXTS), [str(n + 1) for n in range(30)], "document = the line's number, text = all of it"),
    ("".join(f"Doc number {n}\t{line}\n" for n, line in enumerate(TEXTS)), [f"Doc number {n}" for n in range(30)], "document = column 1, text = column 2; tabs"),
    ("id,title,text\n" + "".join(f'{n},"One, two","{line}, ""so"""\n' for n, line in enumerate(TEXTS)), [str(n) for n in range(30)], "document = id, text = text; commas"),
    ("label\ttext\n" + "".join(f"{'xy'[n % 2]}\t{line}\n" for n, line in enumerate(TEXTS)), [str(n + 1) for n in range(30)], "document = the line's number, text = text; tabs"),
    ("".join(f"_*{n} {line}\n" for n, line in enumerate(TEXTS)), [f"_*{n}" for n in range(30)], "document = the first word, text = the others"),
])
def test_what_names_a_document_is_found_and_a_document_is_a_row(sptx, text, names, how):
    done = train(sptx, text, "documents", "--corpus.min_count=1")
    assert said(done).startswith(how) and f" in {len(names)} documents, " in done.stderr
    assert sorted(documents(sptx)) == sorted(names)
    for ending in ("\r\n", "\n"):
        again = train(sptx, "\ufeff" + text.replace("\n", ending), "documents", "--corpus.min_count=1", run="again")
        assert words(sptx, "again") == words(sptx) and said(again) == said(done)
    sptx("train", "run/config.ini", "--run.dir=same")
    assert sptx.tables("same") == sptx.tables("run")


def test_keys_of_documents(sptx):
    text = "".join(f"{n % 4},t{n},{line}\n" for n, line in enumerate(TEXTS))
    assert "corpus.names = file needs corpus.format = documents" in refused(sptx, text, "lists", "--corpus.names=file")
    done = train(sptx, text, "documents", "--corpus.min_count=1", "--corpus.columns=2,3", "--corpus.separator=comma")
    assert said(done) == "document = column 2, text = column 3; commas, no header" and "t7" in documents(sptx) and "t7" not in words(sptx)
    done = train(sptx, text, "documents", "--corpus.min_count=1", "--corpus.columns=1,3", "--corpus.separator=comma")
    assert "(4 names in 30 lines: lines of one name are one document)" in done.stderr and " in 4 documents, " in done.stderr
    done = train(sptx, text, "documents", "--corpus.min_count=1", "--corpus.columns=3", "--corpus.separator=comma")
    assert said(done).startswith("document = the line's number, text = column 3") and len(documents(sptx)) == 30


def test_of_a_directory_each_file_is_a_document(sptx):
    for n, line in enumerate(TEXTS[:12]):
        sptx.path("texts", f"g{n % 3}").mkdir(parents=True, exist_ok=True)
        sptx.path("texts", f"g{n % 3}", f"file {n}.txt").write_text(line.replace(" on ", "\non\n\n") + ("\n" if n % 2 else ""))
    sptx.path("texts", "g0", "empty.txt").write_text("")
    done = sptx("train", "--corpus.path=texts", "--corpus.format=documents", "--corpus.min_count=1", "--run.dir=run", *QUICK)
    assert said(done).startswith("document = each file, named by its path") and "84 tokens in 12 documents" in done.stderr
    assert sorted(documents(sptx)) == sorted(f"texts/g{n % 3}/file {n}.txt" for n in range(12))
    assert "names = file" in sptx.path("run", "config.ini").read_text()
    for n in range(3):
        sptx.path(f"part{n}.tsv").write_text("".join(f"d{i}\t{TEXTS[i]}\n" for i in range(10 * n, 10 * n + 10)))
    done = sptx("train", "--corpus.path=part0.tsv,part1.tsv,part2.tsv", "--corpus.format=documents", "--corpus.min_count=1", "--run.dir=parts", *QUICK)
    assert said(done).startswith("document = column 1, text = column 2") and len(documents(sptx, "parts")) == 30


# ---- triples, events, literals, files of several kinds ----

def knowledge(count=400, first=0):
    return [(f"e{i * 7 % 60}", f"e{i * 11 % 60}", f"rel{i % 4}") for i in range(first, first + count)]


def test_the_order_of_triples_is_found_and_kept(sptx):
    usual = "".join(f"{h}\t{r}\t{t}\n" for h, t, r in knowledge())
    train(sptx, usual, "triples", "--model.dim=8", run="usual")
    for order, columns in (("{0}\t{1}\t{2}", "1,3,2"), ("{2}\t{0}\t{1}", "2,1,3")):
        done = train(sptx, "".join(order.format(*line) + "\n" for line in knowledge()), "triples", "--model.dim=8")
        assert "(the relation has few names)" in said(done) and sptx.tables("run") == sptx.tables("usual")
        assert f"\ncolumns = {columns}\n" in sptx.path("run", "config.ini").read_text()
        sptx.path("held").write_text("".join(order.format(*line) + "\n" for line in knowledge(3, 500)))  # too few lines to tell by themselves
        held = sptx("evaluate", "run", "--triples=held").stdout
        sptx.path("held").write_text("".join(f"{h}\t{r}\t{t}\n" for h, t, r in knowledge(3, 500)))
        assert held.split()[1:] == sptx("evaluate", "usual", "--triples=held").stdout.split()[1:]


def test_a_first_line_may_count_the_others(sptx):
    lines = [f"{h[1:]} {t[1:]} {r[3:]}\n" for h, t, r in knowledge()]
    train(sptx, "".join(lines), "triples", run="plain")
    done = train(sptx, f"{len(lines)}\n" + "".join(lines), "triples")
    assert said(done).endswith("no header, a count in the first line") and sptx.tables("run") == sptx.tables("plain")
    sptx("train", "run/config.ini", "--run.dir=same")
    assert sptx.tables("same") == sptx.tables("run")


def test_literals_are_left_out_unless_the_key_says_otherwise(sptx):
    text = "".join(f"<http://a/{i % 20}> <http://a/p{i % 3}> " + (f'"name {i}"@en' if i % 4 == 0 else f"_:b{i % 5}" if i % 4 == 1 else f"<http://a/{i * 7 % 20}>")
                   + " .\n" for i in range(80))
    done = train(sptx, text, "triples")
    assert "left out   20 of 80 triples, whose subject or object is a literal (corpus.literals = yes keeps them)\n" in done.stderr
    assert "kept       20 triples with blank nodes" in done.stderr and not [word for word in words(sptx) if word.startswith('"')]
    done = train(sptx, text, "triples", "--corpus.literals=yes")
    assert "left out" not in done.stderr and '"name 4"@en' in words(sptx) and "unused" not in done.stderr
    done = train(sptx, text.replace(" .", " <http://a/graph> ."), "triples")
    assert "unused     the fourth term of 80 lines, the graph of N-Quads\n" in done.stderr and "http://a/graph" not in words(sptx)


def test_what_did_not_happen_is_left_out(sptx):
    clicks = [(i % 20, i * 7 % 30, i % 3 == 0) for i in range(300)]
    kept = "".join(f"{u},{i}\n" for u, i, c in clicks if c)
    train(sptx, "user,item\n" + kept, "pairs", run="kept")
    for column, of in (("click", lambda c: int(c)), ("is_click", lambda c: bool(c))):
        done = train(sptx, f"user,item,{column}\n" + "".join(f"{u},{i},{of(c)}\n" for u, i, c in clicks), "pairs")
        assert f"rating = {column} (lines of 0 are left out)" in said(done) and "left out   200 of 300 pairs, whose rating is 0" in done.stderr
        assert sptx.tables("run") == sptx.tables("kept")
    events = "user,item,event\n" + "".join(f"{u},{i},{'cart' if c else 'view'}\n" for u, i, c in clicks)
    assert "event = event (cart 100, view 200: all count alike; corpus.events = WORD,.. keeps some)" in said(train(sptx, events, "pairs"))
    done = train(sptx, events, "pairs", "--corpus.events=cart,purchase")
    assert "left out   200 of 300 pairs, whose event corpus.events does not name" in done.stderr and sptx.tables("run") == sptx.tables("kept")
    sptx.path("run").rename(sptx.path("before"))
    assert "has an event that corpus.events = buy names" in refused(sptx, events, "pairs", "--corpus.events=buy")
    zeros = "user,item,plays\n" + "".join(f"{u},{i},0\n" for u, i, c in clicks)
    weighed = ["--corpus.weights=log", "--train.update=batch", "--examples.mode=user"]
    assert "all 300 ratings of the corpus 'file' are 0" in refused(sptx, zeros, "pairs", *weighed)


def test_returns_and_rows_without_a_customer_are_said(sptx):
    text = "CustomerID,StockCode,Quantity\n" + "".join(f"{i % 20 if i % 10 else ''},s{i % 7},{-1 if i % 5 == 1 else i % 3 + 2}\n" for i in range(200))
    done = train(sptx, text, "pairs")
    assert "left out   20 of 200 pairs, which have no list or no item" in done.stderr
    assert "Quantity -1 to 4 found, 40 of the first 180 below 0 (returns?): all count alike; corpus.min_rating = 2 leaves those out" in done.stderr


@pytest.mark.parametrize("format", ["lists", "adjacency", "graph", "pairs"])
def test_a_matrix_is_refused_with_the_way(sptx, format):
    square = "".join(",".join(str(int(i != j and (i * j) % 3 == 1)) for j in range(6)) + "\n" for i in range(6))
    assert "are a matrix" in refused(sptx, square, format) and "corpus.format = " in refused(sptx, square, format)
    named = ",bread,milk,tea,egg\n" + "".join(f"{n},{n % 2 == 0},{n % 3 == 0},False,True\n" for n in range(9))
    assert "pandas.read_csv(FILE, sep=',', index_col=0).stack()" in refused(sptx, named, format)
    if format != "pairs":
        assert "holds a graph of METIS (4 nodes, 3 edges" in refused(sptx, "% by hand\n4 3\n2\n1 3\n2 4\n3\n", format)


def test_files_of_training_and_test_in_one_directory_are_said(sptx):
    sptx.path("split").mkdir()
    for name in ("train", "valid", "test"):
        sptx.path("split", f"{name}.tsv").write_text("".join(f"{h}\t{r}\t{t}\n" for h, t, r in knowledge(50)))
    done = sptx("train", "--corpus.path=split", "--corpus.format=triples", "--run.dir=run", *QUICK)
    assert "warning: test.tsv, valid.tsv are trained, too; corpus.path = split/train.tsv leaves them out\n" in done.stderr


def test_a_run_keeps_how_its_file_was_read(sptx):
    text = "stars;who;sku\n" + "".join(f"{i % 5},5;u{i % 20};s{i % 7}\n" for i in range(100))
    done = train(sptx, text, "pairs", "--corpus.columns=who,sku,stars")
    kept = sptx.path("run", "config.ini").read_text()
    assert f"# columns    {said(done)}\n" in kept
    for key in ("header = yes", "separator = semicolon", "columns = who,sku,stars"):
        assert f"\n{key}\n" in kept
    again = sptx("train", "run/config.ini", "--run.dir=again")
    assert said(again) == said(done) and sptx.tables("again") == sptx.tables("run")
    quick = [key for key in QUICK if "threads" not in key]
    resumed = sptx("train", "--corpus.path=file", "--corpus.format=pairs", "--run.dir=run", "--corpus.columns=who,sku,stars", "--resume",
                   "--negatives.count=2", "--negatives.exclude=no", *quick)
    assert "is finished already" in resumed.stderr


def test_held_out_files_need_not_be_laid_out_as_the_corpus(sptx):
    """The run's separator, header and columns are tried first; a file that lacks them is looked at as if nothing was set."""
    pairs = [(u, f"s{(u + i) % 11}") for u in range(40) for i in range(6)]
    train(sptx, "userId;itemId;rating\n" + "".join(f"{u};{i};1\n" for u, i in pairs[::2]), "pairs", "--train.epochs=5")
    scores = []
    for text in ("userId;itemId;rating\n" + "".join(f"{u};{i};1\n" for u, i in pairs[1::2]), "itemId,userId\n" + "".join(f"{i},{u}\n" for u, i in pairs[1::2]),
                 "".join(f"{u}\t{i}\n" for u, i in pairs[1::2])):
        sptx.path("held").write_text(text)
        scores.append(sptx("evaluate", "run", "--train=file", "--held-out=held", "--k=5").stdout.split(" ", 1)[1])
    assert scores[0] == scores[1] == scores[2] and "lists 40" in scores[0]


def test_held_out_clicks_of_0_are_left_out_and_said(sptx):
    clicks = [(i % 20, i * 7 % 30, i % 3 == 0) for i in range(300)]
    train(sptx, "user,item,click\n" + "".join(f"{u},{i},{int(c)}\n" for u, i, c in clicks), "pairs")
    sptx.path("held").write_text("user,item,click\n" + "".join(f"{u},{(i + 1) % 30},{int(i % 2)}\n" for u, i, c in clicks[:40]))
    assert "left out   20 of 40 pairs, whose rating is 0" in sptx("evaluate", "run", "--train=file", "--held-out=held").stderr


def test_leave_one_out_is_read_as_the_corpus_was(sptx):
    rows = [(u, (u + i) % 11, i % 5 + 1, 978300000 + i) for u in range(30) for i in range(6)]
    sptx.path("held").write_text("".join(f"{u}\t{i}\t{r}\t{t}\n" for u, i, r, t in rows[::6]))
    train(sptx, "".join(f"{u}\t{i}\t{r}\t{t}\n" for n, (u, i, r, t) in enumerate(rows) if n % 6), "pairs")
    scores = [sptx("evaluate", "run", "--train=file", "--held-out=held", *keys)
              for keys in ([], ["--format=pairs"], ["--corpus.columns=1,2"], ["--format=pairs", "--corpus.columns=1,2,3", "--corpus.separator=tab"])]
    assert len({done.stdout for done in scores}) == 1 and "lists 30" in scores[0].stdout
    assert [done.stderr.count("columns    ") for done in scores] == [1] * 4  # two files that are taken alike are said once
    asked = sptx("recommend", "run", "--lists=held", "--corpus.columns=1,2")
    assert asked.stderr.count("columns    ") == 1


def odd_pairs(line, first="", end="\n"):
    return first + "".join(line(i % 20 + 1, i * 7 % 31 + 1, i % 5 + 1, 978300760 + i) + end for i in range(300))


@pytest.mark.parametrize("text, how", [
    (odd_pairs(lambda u, i, r, t: f"{u}::{i}::{r}::{t}"), "list = column 1, item = column 2, rating = column 3; '::', no header"),
    (odd_pairs(lambda u, i, r, t: f'{t},"WHITE, {i} HEART",s{i},{-1 if r == 1 else r},{u if r > 2 else ""}', "\ufeffInvoiceDate,Description,StockCode,Quantity,CustomerID\r\n", "\r\n"),
     "list = CustomerID, item = StockCode, rating = Quantity; commas, a header"),
    (odd_pairs(lambda u, i, r, t: f"{t}000,{u},{'view' if r > 1 else 'addtocart'},{i},", "timestamp,visitorid,event,itemid,transactionid\n"),
     "list = visitorid, item = itemid, event = event (addtocart 60, view 240: all count alike; corpus.events = WORD,.. keeps some); commas, a header"),
    (odd_pairs(lambda u, i, r, t: f"{u},{i},{r % 2},{int(r > 4)}", "user_id,video_id,is_like,is_follow\n"),
     "list = user_id, item = video_id, rating = is_like (lines of 0 are left out); commas, a header"),
    (odd_pairs(lambda u, i, r, t: f'"{u}";"0{i}X";"{r}"', '"User-ID";"ISBN";"Book-Rating"\r\n', "\r\n"), "list = User-ID, item = ISBN, rating = Book-Rating; semicolons, a header"),
    (odd_pairs(lambda u, i, r, t: f"Ugo {u};Film {i};{r},5", "utente;film;voto\n"), "list = utente, item = film, rating = voto; semicolons, a header, decimal commas"),
    ("u1,i1,1.7e308\n" + odd_pairs(lambda u, i, r, t: f"u{u},i{i},{r}"), "list = column 1, item = column 2, rating = column 3; commas, no header"),
], ids=["movielens", "retail", "retailrocket", "kuairand", "bookcrossing", "italian", "huge"])
def test_ratings_as_public_files_have_them(sptx, text, how):
    assert said(train(sptx, text, "pairs")) == how


def test_a_matrix_whose_rows_have_numbers_for_names(sptx):
    text = "TID,bread,milk,tea\n" + "".join(f"{n},{n % 2 == 0},{n % 3 == 0},False\n" for n in range(60))
    assert "3 columns of 0 and 1 are a matrix" in refused(sptx, text, "lists") and "index_col=0" in refused(sptx, text, "pairs")


def test_baskets_are_asked_as_they_were_trained(sptx):
    """Lists without names: one item of several words is an item, and two items are no pair."""
    baskets = ["whole milk,yogurt,butter", "rolls,brown bread,whole milk", "yogurt,brown bread", "rolls,butter,yogurt"] * 6
    train(sptx, "".join(f"{line}\n" for line in baskets), "lists")
    for name, field in (("rest", slice(None, -1)), ("held", slice(-1, None))):
        sptx.path(name).write_text("".join(",".join(line.split(",")[field]) + "\n" for line in baskets))
    done = sptx("evaluate", "run", "--train=rest", "--held-out=held", "--k=2")
    assert " lists 24 unknown 0 held-out 24 " in done.stdout and "as pairs" not in done.stderr
    sptx.path("new").write_text("whole milk,yogurt\nrolls,butter\n")
    told = [line.split("\t")[:2] for line in sptx("recommend", "run", "--lists=new", "--k=5").stdout.splitlines()]
    assert {item for name, item in told if name == "1"} == {"butter", "rolls", "brown bread"} and {name for name, _ in told} == {"1", "2"}
    sptx.path("pairs").write_text("basket,item\nb,whole milk\nb,yogurt\n")
    assert "'pairs' as pairs" in sptx("recommend", "run", "--lists=pairs", "--k=5").stderr


def test_held_out_items_that_the_run_was_trained_on_are_said(sptx):
    pairs = [(f"u{user}", item) for user in range(8) for item in "abcd" if (user + ord(item)) % 3]
    train(sptx, "".join("%s,%s\n" % pair for pair in pairs), "pairs")
    sptx.path("some").write_text("".join("%s,%s\n" % pair for pair in pairs if pair[1] != "d"))
    sptx.path("held").write_text("".join("%s,%s\n" % pair for pair in pairs if pair[1] == "d") + "u0,zz\n")
    done = sptx("evaluate", "run", "--train=some", "--held-out=held", "--k=2")
    count = sum(pair[1] == "d" for pair in pairs)
    assert f"warning: {count} of {count + 1} held-out items of 'held' are ones that 'run' was trained on" in done.stderr
    assert f" held-out {count + 1} trained {count} " in done.stdout
    train(sptx, "".join("%s,%s\n" % pair for pair in pairs if pair[1] != "d" or pair[0] == "u0"), "pairs", run="honest")
    done = sptx("evaluate", "honest", "--train=some", "--held-out=held", "--k=2")
    assert f" trained {('u0', 'd') in pairs:d} " in done.stdout
    train(sptx, "a r b\nb r c\nc s d\n", "triples", run="facts")
    sptx.path("facts.txt").write_text("a r b\nb r d\n")
    assert "warning: 1 of 2 triples of 'facts.txt' are ones that 'facts' was trained on" in sptx("evaluate", "facts", "--triples=facts.txt").stderr


def test_comments_before_rows_are_no_rows(sptx):
    assert refused(sptx, "% bip\n% 3 2\n1 7\n2 7\n1 8\n3\n", "pairs").startswith("'file' line 6: ")
    train(sptx, "#nx.py\n# GMT Sat\n# A Club\n0 1 2\n1 2\n2 0\n", "adjacency")
    assert set(words(sptx)) == {"0", "1", "2"}
    train(sptx, "% bip\n% 3 2\n1 7\n2 7\n1 8\n3 8\n", "pairs")
    assert set(words(sptx)) == {"7", "8", "list:1", "list:2", "list:3"}
    train(sptx, "%%MatrixMarket matrix coordinate\n%\n3 2 4\n1 1 5\n2 1 1\n1 2 2\n3 2 4\n", "pairs")
    assert set(words(sptx)) == {"1", "2", "list:1", "list:2", "list:3"}
    sptx.path("pairs").write_text("# From a paper\n# Word 1\tWord 2\tHuman (mean)\n1\t2\t6.7\n2\t2\t7\n")
    assert "covered 2/2" in sptx("evaluate", "run", "--pairs=pairs").stdout


def test_counts_of_first_lines_say_so(sptx):
    events = ["u%d,i%d,%s" % (i % 90, i % 70, "fav" if i % 3 == 0 and i >= 2500 else "click") for i in range(6000)]
    done = train(sptx, "user,item,action\n" + "\n".join(events) + "\n", "pairs")
    assert "event = action (of the first 1,999 lines: click 1999: all count alike" in said(done)
    assert "left out" in train(sptx, "user,item,action\n" + "\n".join(events) + "\n", "pairs", "--corpus.events=fav").stderr
    ratings = "".join("u%d,i%d,%d\n" % (i % 90, i % 70, 1 + i % 5) for i in range(9000))
    assert re.search(r"about 40 in 100 of the first [56],\d{3}$", train(sptx, ratings, "pairs").stderr, re.M)


def test_lists_whose_lines_share_a_name_are_counted_once(sptx):
    text = 'Person,item\n1,"rye bread"\n1,milk\n2,milk\n2,salt\n'
    assert re.search(r"^corpus +4 tokens in 2 lists, ", train(sptx, text, "lists").stderr, re.M)


def test_titles_may_be_in_the_first_column(sptx):
    train(sptx, "4\n8 4 3\n2 7 0\n3 8 4\n2 4 4\n", "triples")
    sptx.path("names").write_text("Ulm\t8\nBonn\t4\nRhine\t7\nDanube\t2\nMain\t3\n")
    done = sptx("recommend", "run", "--head=2", "--relation=4", "--k=4", "--titles=names")
    assert "titles     of 'names' are in column 1" in done.stderr and {"Ulm", "Danube"} <= {line.split("\t")[-1] for line in done.stdout.splitlines()}
    sptx.path("others").write_text("Ulm\tx\nBonn\ty\n")
    assert "warning: 'others' has a title for no row of 'run'" in sptx("nearest", "run", "8", "--titles=others").stderr
    assert "wanted --lists=FILE" in sptx.refuses("recommend", "run", "--head=2", "--relation=4", "--titles=names", "--corpus.columns=2,1", code=2)


def test_one_of_a_kind_is_singular(sptx):
    sptx.path("one.tsv").write_text("a\tr\tb\n")
    assert "corpus           2 tokens, 1 triple\n" in sptx("plan", "--corpus.path=one.tsv", "--corpus.format=triples", *QUICK).stdout
    sptx.path("one.nt").write_text("_:a <http://r> <http://b> .\n")
    said = sptx("train", "--corpus.path=one.nt", "--corpus.format=triples", "--run.dir=run", *QUICK).stderr
    assert "kept       1 triple with blank nodes" in said and "corpus     1 triple of 2 entities and 1 relation" in said
