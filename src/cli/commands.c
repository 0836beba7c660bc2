/* commands: the table of all commands. */
#include "commands.h"

#include "sptx.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_HELP                                                                                                      \
    "--section.key=value sets any key of the configuration, over the file or without one; 'sptx-w2v help keys' lists them."
#define DEVICE_HELP "--device.threads=N and the other keys of [device] choose what the search runs on."
#define RUN_HELP                                                                                                       \
    "RUN is a run directory, whose newest good checkpoint is read, or one checkpoint in it; or a file of words with their\n"\
    "vectors: fastText's .bin, word2vec's binary or text form, GloVe's text."

#define TABLES_HELP                                                                                                    \
    "The default table depends on what the run was trained on. Words and items of lists (examples.mode = window, cbow,\n" \
    "list): target. Items whose lists have rows of their own (user): context. Citations and links (adjacency): sum, to\n" \
    "which a vector that was never trained adds nothing. Nodes of a graph (walk): propagated, or normsum if the graph has\n" \
    "more than 4 million nodes and arcs or its file is gone. Only a run of a graph has the table propagated: normsum (the\n" \
    "sum of both rows, each of unit length), spread over the graph (the run's file corpus.graph). A list's row is named\n" \
    "list:NAME; it is an answer only with --lists.\n"

#define SCORES_HELP                                                                                                    \
    "                      target           mean of the list's unit target rows against target rows, by cosine: by\n"      \
    "                                       itself for words and items of lists trained by dot products\n"                         \
    "                      context          mean of its target rows against context rows, by dot product: by itself for nodes\n" \
    "                                       of a graph, which finds new links of a node\n" \
    "                      context-cosine   mean of its unit target rows against context rows, by cosine: by itself for\n" \
    "                                       those trained by cosines (train.score)\n" \
    "                      normsum          as target, of the sums of target and context row, each of unit length first\n" \
    "                      sum              the same without unit length first\n"                                         \
    "                      propagated       as target, of a graph's normsum rows, spread over the graph\n" \
    "                      context-context  as target, of the context rows\n"                                            \
    "                      user             its own row (examples.mode = user), or that of the paper which begins the line\n" \
    "                                       (adjacency) or of that node (walk), against context rows, by dot product: by\n" \
    "                                       itself for all three; items by hand are scored by sum where the run is of\n" \
    "                                       citations, by context where it is of a graph\n" \
    "                      user-cosine      the same by cosine: by itself where trained so; with examples.own below 1 the row\n" \
    "                                       and the mean of its target rows, as they were trained\n" \
    "                      If the run's lists have rows, user and user-cosine fold a list in that was not trained: they\n" \
    "                      compute the row that training would have given it, from its items and the run's loss, with the\n" \
    "                      items' rows unchanged. context-context uses the mean of its items' rows instead\n"

/* Turns the table of flags into help text: one line for each flag of a program. */
#define KEY(program, flag, key, fallback, help) HELP_OF_##program("  " flag "  " key " = " fallback ": " help "\n")
#define OWN(program, flag, fallback, help)      HELP_OF_##program("  " flag "  " help "\n")
#define HELP_OF_WORD2VEC(text)                  text
#define HELP_OF_WORD2PHRASE(text)
static const char word2vec_help[] =
    "Takes all flags of word2vec.c with its defaults and writes the same files. A link to this program that is named\n"
    "word2vec runs this command, so that scripts which call ./word2vec need no change; word2phrase, distance, word-analogy\n"
    "and compute-accuracy work likewise. OUTPUT.run is the run directory while training, and is removed at the end. A line\n"
    "end is no word: there is no vector of </s>.\n"
    "\n"
#include "word2vec_flags.def"
    "\n" KEYS_HELP;
#undef HELP_OF_WORD2VEC
#undef HELP_OF_WORD2PHRASE
#define KEY(program, flag, key, fallback, help) HELP_OF_##program("  " flag "  " key " = " fallback ": " help "\n")
#define OWN(program, flag, fallback, help)      HELP_OF_##program("  " flag "  " help "\n")
#define HELP_OF_WORD2VEC(text)
#define HELP_OF_WORD2PHRASE(text)               text
static const char word2phrase_help[] =
    "Joins the same words as word2phrase.c, and writes the same bytes: a blank begins each line. It keeps what that program\n"
    "loses: the last word of a text without a line end, letters of words beyond 59, and rare bigrams of a large text.\n"
    "\n"
#include "word2vec_flags.def"
    "\n" KEYS_HELP;

const char command_version[] = "sptx-w2v " SPTX_VERSION;

const struct command commands[] = {
    {"train", cmd_train, "train [CONFIG.ini] [--section.key=value ...] [--resume | --overwrite[=now]]",
     "train; write the run directory",
     "Counts the corpus, encodes it beside the run, trains, and writes run.dir (runs/NAME by default): config.ini,\n"
     "vocab.tsv, metrics.jsonl, and checkpoint-<step>/ with target.npy, context.npy and state.ini.\n"
     "\n"
     "  --resume      go on from the newest good checkpoint of the run; start over where there is none yet\n"
     "  --overwrite   replace an older run in run.dir; without it an older run is never touched. It stays until the\n"
     "                new run has its first checkpoint; --overwrite=now removes it before training, for disks without\n"
     "                space for both\n"
     "\n" KEYS_HELP "\n"
     "\n"
     "The loss is printed a pair (a target with one positive). Its size depends on the options: judge a run by its held-out\n"
     "loss (train.held_out = 0.01) or by `evaluate`. metrics.jsonl has the loss an example and a dot product, too.\n"
     "\n"
     "Ctrl-C, SIGTERM and SIGHUP write a checkpoint first; the exit code is then 1, and --resume goes on from there.\n"
     "\n"
     "mpirun -n G sptx-w2v train ... trains over G processes (ranks), on one machine or several; device.gpus = G begins them:\n"
     "each has some of the columns of every row, with their optimizer state, in its own memory. The same G makes the same\n"
     "bytes, another G the same up to rounding, and --resume takes any G. Ranks train in exact steps (train.update = batch);\n"
     "one process alone trains lock-free (train.update = hogwild)."},
    {"plan", cmd_plan, "plan [CONFIG.ini] [--section.key=value ...] [--json]",
     "bytes by place, what a step moves, the most pairs a second; before anything is allocated",
     "Prints what train would take: bytes on the GPU, pinned (in memory of the host that the GPU reads), in files; the\n"
     "frequent rows that lie on the GPU instead of the host (hot), and what share of reads they answer; what a step moves\n"
     "over the link and in memory, and how many pairs a second that allows at most (a pair is a target with one positive).\n"
     "How fast copies are is measured once, in a second, and kept in $XDG_CACHE_HOME/sptx-w2v or ~/.cache/sptx-w2v; bench\n"
     "measures it again. Memory is what the machine has or, in a container, what its limit leaves. Where a run does not\n"
     "fit, says what to change and exits with 1. The corpus is counted and encoded into the run directory (or\n"
     "corpus.cache), where train finds it again.\n"
     "\n"
     "  --json        the same numbers as one line of JSON\n"
     "\n"
     "With device.backend = cuda and memory.gpu_budget = SIZE it plans for a GPU of that size, be one here or not; with\n"
     "device.ranks = G for one of G processes that share out the columns, each on a machine of its own, and with\n"
     "device.gpus = G or under mpirun for one of those that are begun so.\n"
     "\n" KEYS_HELP},
    {"tune", cmd_tune,
     "tune [CONFIG.ini] [--section.key=value ...] [--minutes=5] [--trials=N] [--out=best.ini] [--pairs=FILE ...] "
     "[--analogies=FILE ...] [--anew]",
     "find keys for the data: trains on most of it, judges by the rest",
     "Tries keys on the data and writes the best ones as a configuration. A part of the data is held out: of lists a tenth\n"
     "of each one's items (judged by recall@20), of a graph a tenth of its edges, so that what hangs together still does\n"
     "(MRR among 1,000 nodes), of text a fiftieth of its windows (their loss). Files of tests are never looked at.\n"
     "\n"
     "The first trial has the keys as they are. Others draw theirs, at first anywhere, later near the best ones; keys that\n"
     "are set stay as they are. Each trains for a third of the epochs that the keys come to, the best third of them for\n"
     "all of these, and of these the best third for three times as many (successive halving); train.epochs, where it is\n"
     "set, is the most. A line of stdout tells of each training: * leads its rung, = was known from an earlier call.\n"
     "\n"
     "  --minutes=5       how long it may take\n"
     "  --trials=N        how many trials begin; without --minutes there is no other end, and the same seed (train.seed) gives\n"
     "                    the same answer where training is exact (train.update = batch)\n"
     "  --out=best.ini    gets the best keys, and in comments what was tried\n"
     "  --pairs=FILE --analogies=FILE\n"
     "                    text: judges by these, as evaluate does, and tries keys that a loss cannot compare\n"
     "  --anew            forgets what was tried\n"
     "\n"
     "Ctrl-C keeps the best so far. RUN.tune/tried.tsv, beside run.dir, remembers what was tried: the same call goes on\n"
     "from it. Only one process at a time can search in RUN.tune. A RUN.tune with files that tune did not write is refused.\n"
     "\n" KEYS_HELP},
    {"export", cmd_export, "export RUN --format=F --out=FILE [--type=f32|bf16|f16] [--table=TABLE] [--classes=N] [--lists]",
     "write the vectors in a format that other programs read",
     RUN_HELP
     "\n"
     "\n"
     "  --format=F    word2vec-bin   gensim, word2vec and most others\n"
     "                word2vec-text  the same as text, nine digits: float32 to the last bit\n"
     "                glove-text     the same without the first line; gensim reads it with no_header=True\n"
     "                npy            NumPy, rows x dim float32\n"
     "                fvecs          faiss: before each row its dim as int32\n"
     "                fbin           DiskANN, cuVS, usearch: rows and dim as uint32, then the rows\n"
     "                safetensors    PyTorch and others: one tensor, named as the table\n"
     "                projector      the Embedding Projector: FILE has the vectors, FILE.metadata.tsv beside it\n"
     "                               word and count\n"
     "                fasttext       fastText's own file (.bin) of words: both tables, and the rows of all n-grams; fastText\n"
     "                               and gensim go on with it, and every command here reads it in the place of RUN\n"
     "                classes        lines of word and class, as word2vec -classes writes them; wants --classes\n"
     "                npy, fvecs, fbin and safetensors hold no words: their rows are in the order of vocab.tsv\n"
     "  --out=FILE    written beside and renamed: FILE is never half there, keeps its rights, and may be a link to it;\n"
     "                /dev/stdout and pipes get the bytes as they come\n"
     "  --type=T      f32; or bf16 or f16, half the bytes, for npy, fbin and safetensors. bf16 is exact for a run with\n"
     "                model.precision = bfloat16; NumPy has no such type, so npy holds it as a field weights_bfloat16\n"
     "                of uint16, the upper halves of float32\n"
     "  --table=T     target, context, their sum, normsum (each of unit length first; a row of zeros stays zeros), or\n"
     "                propagated\n"
     "  --classes=N   parts the words into at most N classes by the directions of their vectors (k-means of unit vectors)\n"
     "  --lists       the rows of lists, too, behind those of items\n"
     "\n" TABLES_HELP},
    {"nearest", cmd_nearest,
     "nearest RUN WORD... [--k=10] [--metric=cosine|dot] [--table=TABLE] [--query=TABLE] [--among=TABLE] "
     "[--lists] [--titles=FILE]",
     "the words nearest to words: lines of word <TAB> score",
     RUN_HELP
     "\n"
     "\n"
     "  --k=10              how many\n"
     "  --metric=cosine     or dot\n"
     "  --table=TABLE       both of the following\n"
     "  --query=TABLE       which table the word's vector comes from: target, context, their sum, normsum (each of unit\n"
     "                      length first), or propagated\n"
     "  --among=TABLE       which table is searched, likewise; where one of the two is given, the other is target\n"
     "  --lists             rows of lists are searched, too\n"
     "  --titles=FILE       an id and its title on each line: prints titles as a last column, and WORD may be a title\n"
     "\n" TABLES_HELP
     "Where words share rows of their n-grams (examples.subwords, and models of fastText), WORD may be one never seen.\n"
     "A word that begins with -- is given behind a lone --. Without a WORD it asks at the terminal, and sums the vectors of\n"
     "several words.\n" DEVICE_HELP},
    {"analogy", cmd_analogy, "analogy RUN A B C [--k=10]", "A is to B as C is to ?",
     RUN_HELP "\n"
              "\n"
              "Lines of word <TAB> score: the words nearest to B - A + C by cosine, the three left out, in the table that\n"
              "nearest asks by itself. Without words it asks at the terminal.\n"
              "\n"
              "  --k=10        how many\n"
              "\n" DEVICE_HELP},
    {"evaluate", cmd_evaluate,
     "evaluate RUN [--pairs=FILE ...] [--analogies=FILE ...] [--restrict=30000] [--train=LISTS --held-out=LISTS] "
     "[--format=F] "
     "[--groups=FILE --met=5 --sample=2000] [--labels=FILE --share=0.5] [--edges=FILE --known=FILE --directed] [--k=20] "
     "[--table=TABLE] [--score=SCORE]",
     "similarity, analogies, held-out items and links, groups, labels, each with its coverage",
     RUN_HELP
     "\n"
     "\n"
     "  --pairs=FILE      word, word, score on each line: Spearman's rho; may be given several times\n"
     "  --analogies=FILE  lines of a b c d under ': section' lines: accuracy of 3CosAdd; may be given several times\n"
     "  --restrict=30000  analogies among this many of the most frequent words; 0: all\n"
     "  --train=LISTS --held-out=LISTS\n"
     "                    recall, NDCG and hit rate of the lists' held-out items at k. Both are read as the run's corpus\n"
     "                    was (corpus.min_rating, corpus.columns .. of its config.ini; keys of the command line come first),\n"
     "                    each as lists or as pairs, whichever it looks like. The line also has counts. Not judged: held-out\n"
     "                    items that their list has in --train (trained), lists that are not in --train (cold). Judged: lists\n"
     "                    without a row in the run (without-row), which are folded in, as by recommend, or else replaced by\n"
     "                    their items' mean. If all lists are folded in, the score's name says so (user-cosine folded)\n"
     "  --format=F        reads both as F: lists, pairs, adjacency\n"
     "  --groups=FILE     lines of word and its groups, as generate writes them beside a corpus (FILE.groups.tsv): for "
     "each\n"
     "                    column of groups, how many of a row's k nearest rows by cosine are of its own group, as a "
     "share\n"
     "                    of those that could be (k, or the group's other rows), beside what random vectors get\n"
     "  --met=5           groups: rows that the corpus names at least so often are asked; all up to the last of them "
     "are\n"
     "                    searched (which is the same where ids are ranks of frequency)\n"
     "  --sample=2000     groups: ask at most so many of them, always the same ones\n"
     "  --labels=FILE     lines of node and its labels: micro and macro F1 of a logistic regression a label, trained on a\n"
     "                    share of the labelled nodes and asked for as many labels of the others as they have: mean and\n"
     "                    spread of ten shuffles, those of numpy.random.default_rng(0 .. 9).permutation\n"
     "  --share=0.5       labels: the share that is trained on; several with commas between\n"
     "  --edges=FILE      links held out of a graph, read as corpus.format = graph: AUC against as many pairs that are no\n"
     "                    links, MRR and hits@10 of each link's end among 1,000 nodes not linked to its other end, or among\n"
     "                    all such nodes if there are fewer (in the line, among: number of nodes; all: number of ends ranked\n"
     "                    among all nodes). Not judged: links with a node that the run does not know (left-out), links that\n"
     "                    the run was trained on (trained). Scores: dot, cosine and hadamard (a regression over products of\n"
     "                    columns) of the table's rows; cross and cross-cosine of both tables\n"
     "  --known=FILE      links: those that the run was trained on, which are then no wrong answers; hadamard needs them. By\n"
     "                    itself those of the graph that the run was trained on (corpus.format = graph), if it was\n"
     "  --directed        links: have a head, which alone is asked for; by itself both ends are, if the run's graph has none\n"
     "  --k=20            held-out items, groups: how many are looked at\n"
     "  --table=TABLE     target, context, their sum, normsum (each of unit length first), or propagated: whose rows are\n"
     "                    compared, as a rule by cosine; by itself the table that nearest asks\n"
     "  --score=SCORE     held-out items: how a list's items choose others, in the place of --table; by itself "
     "what\n"
     "                    suits what the run was trained for. The line says which it was\n" SCORES_HELP "\n" DEVICE_HELP},
    {"recommend", cmd_recommend,
     "recommend RUN --lists=FILE [--format=F] [--name=LIST ...] | --list=NAME ... | --items=A,B,... [--k=20] [--score=SCORE] "
     "[--titles=FILE] [--among=N | --candidates=FILE] [--seen] [--json]",
     "items for lists: lines of list <TAB> item <TAB> score",
     RUN_HELP
     "\n"
     "\n"
     "For each list the items that suit it best, but for its own. What the run does not know of a list is left out, with a\n"
     "warning that counts it; a list of which it knows nothing gets no line.\n"
     "\n"
     "  --lists=FILE      lists, read as the run's corpus was (corpus.min_rating, corpus.columns .. of its config.ini; keys of\n"
     "                    the command line come first), as lists or as pairs, whichever it looks like\n"
     "  --format=F        reads it as F: lists, pairs, adjacency\n"
     "  --name=LIST       of these only this one; may be given several times\n"
     "  --list=NAME       or a list that the run was trained on, with its training items (from RUN/corpus.ids); or a paper of\n"
     "                    citations, or a node of a graph; may be given several times\n"
     "  --items=A,B,...   or a list by hand, which the lines call 'items'; may be given several times. An item with a comma "
     "in\n"
     "                    its name is given alone. With --titles titles are understood, too\n"
     "  --k=20            how many for each list\n"
     "  --score=SCORE     how a list's items choose others; by itself what suits what the run was trained for, as evaluate\n"
     "                    says and measures it\n" SCORES_HELP
     "  --titles=FILE     an id and its title on each line: prints titles as a last column\n"
     "  --among=N         only of the first N words of vocab.tsv, the most frequent ones as a rule; 0: all\n"
     "  --candidates=FILE recommends only the items of this file, one a line\n"
     "  --seen            a list's own items may be recommended, too, and neighbours of nodes in a graph\n"
     "  --json            an object a list and line: {\"list\": .., \"score\": \"target\", \"known\": 3, \"unknown\": 1,\n"
     "                    \"items\": [{\"item\": .., \"score\": 0.5, \"title\": ..}, ..]}; known, unknown: items of the list;\n"
     "                    score: \"user-cosine folded\" for a list that was not trained and therefore folded in\n"
     "\n" DEVICE_HELP},
    {"report", cmd_report,
     "report RUN --out=FILE [--titles=FILE] [--labels=FILE] [--top=5000] [--search=20000] [--table=TABLE] [--lists] "
     "[--evaluation=FILE ...]",
     "a page for the browser: curves, a map, nearest rows to search",
     RUN_HELP
     "\n"
     "FILE is one page of HTML, below 10 MB, that opens without a server and asks no network: what was trained on what, loss,\n"
     "speed and learning rate over time, a map of the most frequent rows, their nearest rows as 'nearest' gives them, the\n"
     "run's keys.\n"
     "\n"
     "  --out=FILE         written beside and renamed, never half there; /dev/stdout and pipes get the bytes as they come\n"
     "  --titles=FILE      an id and its title on each line: shows titles beside ids, and finds rows by title\n"
     "  --labels=FILE      lines of row and its labels: the map is coloured by each row's first label; by itself by clusters,\n"
     "                     which are called by their most frequent rows\n"
     "  --top=5000         rows of the map, at most 20,000: it compares all with each other, so that 5,000 take seconds and\n"
     "                     20,000 minutes on two cores\n"
     "  --search=20000     rows whose ten nearest ones can be looked up, among all rows; --top at least, and as many\n"
     "                     as 10 MB hold\n"
     "  --table=TABLE      whose rows: target, context, sum, normsum or propagated; by itself the table that nearest asks\n"
     "  --lists            rows of lists are shown and found, too\n"
     "  --evaluation=FILE  what evaluate printed (evaluate RUN ... > FILE), shown in the page; may be given several times\n"
     "\n" DEVICE_HELP},
    {"phrases", cmd_phrases,
     "phrases CORPUS... [--out=FILE] [--min-count=5] [--threshold=T[,T..]] [--passes=N] [--score=word2phrase|default|npmi] "
     "[--delimiter=_] [--connectors=FILE] [--memory=SIZE]",
     "join words that often follow each other: new york -> new_york",
     "Reads text and writes it with phrases joined; train does the same in one run with corpus.phrases = yes. CORPUS is\n"
     "files or directories, packed ones too, or - for standard input. Lines stay lines. The scores and the phrases are those\n"
     "of word2phrase and of gensim's Phrases, but no count is ever dropped to save memory.\n"
     "\n"
     "  --out=FILE         written beside and renamed; by itself the text is printed\n"
     "  --min-count=5      bigrams counted fewer times are not joined\n"
     "  --threshold=T      joins bigrams with a higher score; T,T.. are those of each pass. By itself 100 for word2phrase,\n"
     "                     10 for default, 0.5 for npmi\n"
     "  --passes=N         how often neighbours are joined; two passes make phrases of up to four words\n"
     "  --score=S          word2phrase, default (gensim's) or npmi; see 'sptx-w2v help keys' for the formulas\n"
     "  --delimiter=_      what is put between the words of a phrase\n"
     "  --connectors=FILE  words that may be within a phrase but neither begin nor end it: bank_of_america\n"
     "  --memory=SIZE      for counts of bigrams; where they need more, the text is read several times, with the same result\n"
     "\n" KEYS_HELP},
    {"word2vec", cmd_word2vec, "word2vec -train FILE -output FILE [-flag value ...] [--section.key=value ...]",
     "word2vec.c's command line: trains on text and writes vectors or classes", word2vec_help},
    {"word2phrase", cmd_word2phrase, "word2phrase -train FILE -output FILE [-min-count 5] [-threshold 100] [-debug 2]",
     "word2phrase.c's command line: joins words that often follow each other", word2phrase_help},
    {"distance", cmd_distance, "distance FILE", "word2vec's distance: asks for words and prints the 40 nearest",
     "FILE has vectors as word2vec.c writes them, binary or text, or is a run directory. Each line of standard input is a\n"
     "question; the vectors of several words are summed. EXIT, or the end of input, ends the program.\n"
     "\n" DEVICE_HELP},
    {"word-analogy", cmd_word_analogy, "word-analogy FILE", "word2vec's word-analogy: asks for three words and prints the 40 nearest",
     "As distance, for A B C on each line: A is to B as C is to ?\n"
     "\n" DEVICE_HELP},
    {"compute-accuracy", cmd_compute_accuracy, "compute-accuracy FILE [THRESHOLD] < QUESTIONS",
     "word2vec's compute-accuracy: analogies of standard input, by section",
     "Prints for each section of questions (A B C D below ': section' lines) how many are answered by D. The first five\n"
     "sections are semantic and the others syntactic, as in questions-words.txt. Case does not matter.\n"
     "\n"
     "  THRESHOLD     searches this many of the most frequent words; 0, the default: all\n"
     "\n" DEVICE_HELP},
    {"generate", cmd_generate, "generate books|papers|words|graph --out=FILE [--rows=N --lists=N --edges=N --seed=S]",
     "a synthetic corpus in the shape of a run",
     "books: reading lists (corpus.format = lists); papers: citations (adjacency); words: sentences (text); graph: edges as\n"
     "R-MAT draws them (graph). The same options make the same bytes. Popularity falls as 1 / rank (Zipf's law, exponent 1),\n"
     "over all rows and within each group; evaluate --groups=FILE.groups.tsv says how much of what was planted a run has\n"
     "found. A graph has no groups.\n"
     "\n"
     "  --out=FILE    where to; FILE.groups.tsv beside it tells the series, fields or topics that were drawn\n"
     "                a FILE that ends in .ids holds the encoded corpus itself, its words in FILE.vocab.tsv (of no graph);\n"
     "                one that ends in .zst is packed\n"
     "  --rows=N      books, papers, words or nodes\n"
     "  --lists=N     lists, papers that cite, or sentences; --edges=N: of a graph\n"
     "  --seed=S      of the draws"},
    {"bench", cmd_bench,
     "bench transfer|train|ranks|walks|memory [CONFIG.ini] | read FILE [--section.key=value ...] [--json] [--rows=N --dim=N "
     "--seconds=T --steps=N]",
     "measure this machine",
     "transfer: rows moved between the places of a table; train: the speed of a configuration, its tables opened and "
     "filled\n"
     "as train does it, without checkpoints; ranks: the same over the processes that mpirun began, a line a rank (mpirun -n 2\n"
     "sptx-w2v bench ranks my.ini); walks: how fast walks over a graph are drawn, with nothing trained on them; memory: what a\n"
     "table takes; read: how fast a FILE of data is read, its words counted, and encoded as ids or a graph (the keys of\n"
     "corpus say how it is read). Each result but that of ranks comes with the command, device and date.\n"
     "\n"
     "  --json        a line of JSON a result\n"
     "  --rows=N --dim=N\n"
     "                transfer, memory: the table's\n"
     "  --span=SIZE   transfer: bytes of the host that the rows of the last part are spread over\n"
     "  --brief       transfer: without that last part\n"
     "  --file=FILE   transfer: the table of the place file lies beside it, under no name\n"
     "  --seconds=T --steps=N\n"
     "                train, ranks, walks: how long is measured\n"
     "\n" KEYS_HELP},
    {"devices", cmd_devices, "devices", "what the program sees: GPUs, cores, memory, the backend that auto picks",
     "Takes no arguments. A table's rows in host memory are managed by the GPU's driver where the system can do that, which is\n"
     "faster, and otherwise pinned; SPTX_PIN_ROWS=1 in the environment of any command pins them."},
    {"config", cmd_config, "config [CONFIG.ini] [--section.key=value ...]",
     "every key resolved, as an INI with its help as comments",
     "Without a file: the defaults. What depends on the machine (device.backend, train.batch, memory.*) stays "
     "auto.\n\n" KEYS_HELP},
    {"help", cmd_help, "help [COMMAND|keys|man|bash|zsh]", "this list, a command's options, or every key of the configuration",
     "'sptx-w2v COMMAND --help' is the same as 'sptx-w2v help COMMAND'.\n"
     "\n"
     "  keys          every key of the configuration, with its default and range\n"
     "  man           all of it as a manual page: sptx-w2v help man | man -l -\n"
     "  bash, zsh     completion for a shell: source <(sptx-w2v help bash). make install puts both, and the page, in place"},
    {0}};

enum { NAMES_MOST = 32 }; /* most commands that are compared with a misspelt one */

const struct command *command_find(const char *name) {
    const char *names[NAMES_MOST];
    size_t count = 0;
    for (const struct command *c = commands; c->name; c++) {
        if (!strcmp(c->name, name)) return c;
        if (count < NAMES_MOST) names[count++] = c->name;
    }
    const char *near = text_nearest(name, names, count);
    if (near)
        fail_usage("there is no command '%.100s'; did you mean '%s'?", name, near);
    else
        fail_usage("there is no command '%.100s'; 'sptx-w2v help' lists them", name);
    return NULL;
}

int command_set_key(struct config *config, const char *key, const char *value) {
    char *argument = mem_alloc(strlen(key) + strlen(value) + sizeof "--=", 1, "an option");
    if (!argument) return -1;
    sprintf(argument, "--%s=%s", key, value);
    int result = config_argument(config, argument);
    free(argument);
    return result;
}

int command_ranks(struct ranks *ranks, const char *command) {
    char what[128];
    snprintf(what, sizeof what, "%s %s", command_version, command);
    return ranks_open(ranks, what);
}
