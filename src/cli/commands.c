/* commands: the table of all commands. */
#include "commands.h"

#include "sptx.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_HELP \
    "--section.key=value sets any key of the configuration and overrides the file; of a key that is given twice, the last\n" \
    "value counts. 'sptx-w2v help keys' lists the keys."
#define DEVICE_HELP \
    "--device.threads=N and the other keys of [device] choose the device of the search."
#define RUN_HELP \
    "RUN is a run directory, whose newest whole checkpoint is read, or one checkpoint in it; or a file of words and\n" \
    "vectors: fastText's .bin, word2vec's binary or text format, GloVe's text."

#define FEATURES_HELP(indent) \
    "  --item-features=FILE\n" \
    indent "features of items, as in corpus.item_features, in place of the run's own file. Items of FILE that\n" \
    indent "the run was not trained on are new items\n" \
    "  --feature-words=COLUMNS\n" \
    indent "columns of FILE whose words are features, separated by commas\n"
#define LISTS_HELP(indent) \
    "  --list-features=FILE\n" \
    indent "likewise features of lists (people). A list of FILE that was not trained is answered by its\n" \
    indent "features, or by its features and its items\n"
#define SHARE_HELP(indent) \
    "  --new-share=S     new items take this share of the first 20 places on average; more new items in answers push out\n" \
    indent "trained ones. Default: 0.03, or 0.1 if features also find trained items better, which a line says;\n" \
    indent "the share of all items that are new if that is less; 0.01 at most if features tell nothing about\n" \
    indent "trained items, which a warning says\n"
#define TABLES_HELP \
    "The default table depends on what the run was trained on (examples.mode):\n" \
    "  window, cbow, list   target\n" \
    "  user                 context, for items whose lists have rows of their own\n" \
    "  adjacency            sum of target and context row, without vectors that were never trained\n" \
    "  walk                 propagated: normsum, spread over the graph. It is normsum itself if the graph has more than\n" \
    "                       4 million nodes and arcs, or if its file (corpus.graph of the run) is gone\n" \
    "normsum is target plus context row, each scaled to unit length first; only a run of a graph has propagated. The row of\n" \
    "a list is named list:NAME, in a run of triples that of a relation relation:NAME, and that of its reciprocal\n" \
    "relation:NAME^-1. Such rows are answers only with --lists.\n"

#define SCORES_HELP \
    "                      target           mean of the list's unit target rows against target rows, by cosine. Default for\n" \
    "                                       words, and for items of lists trained by dot products\n" \
    "                      context          mean of the list's target rows against context rows, by dot product. Default\n" \
    "                                       for nodes of a graph, where it finds new links\n" \
    "                      context-cosine   mean of the list's unit target rows against context rows, by cosine. Default\n" \
    "                                       for items of lists trained by cosines (train.score)\n" \
    "                      normsum          as target, but a row is target plus context row, each scaled to unit length\n" \
    "                                       first\n" \
    "                      sum              as target, but a row is target plus context row\n" \
    "                      propagated       as target, but with a graph's normsum rows, spread over the graph\n" \
    "                      context-context  as target, but with context rows\n" \
    "                      user             one row against context rows, by dot product: the list's own row\n" \
    "                                       (examples.mode = user), the target row of the paper that begins the line\n" \
    "                                       (adjacency), or that of the node (walk). Default for these three modes. For\n" \
    "                                       a list given by its items the default is sum in a run of citations, and\n" \
    "                                       context in a run of a graph\n" \
    "                      user-cosine      as user, by cosine. Default if the run was trained by cosines. With\n" \
    "                                       examples.own below 1 the list's vector is the weighted mean of its row and its\n" \
    "                                       items' target rows, as in training\n" \
    "                      If the run's lists have rows, user and user-cosine fold in a list that was not trained: they\n" \
    "                      compute the row that training would have given it, from its items and the run's loss; the items'\n" \
    "                      rows stay as they are. context-context uses the mean of the items' rows instead\n"

/* Makes help text from the table of flags: one line for each flag of a program. */
#define KEY(program, flag, key, fallback, help) HELP_OF_##program("  " flag "  " key " = " fallback ": " help "\n")
#define OWN(program, flag, fallback, help)      HELP_OF_##program("  " flag "  " help "\n")
#define HELP_OF_WORD2VEC(text)                  text
#define HELP_OF_WORD2PHRASE(text)
#define HELP_OF_VOCAB_COUNT(text)
#define HELP_OF_COOCCUR(text)
#define HELP_OF_SHUFFLE(text)
#define HELP_OF_GLOVE(text)
static const char word2vec_help[] =
    "Takes all flags of word2vec.c with its defaults and writes the same files. A link to this program that is named\n"
    "word2vec runs this command, so that scripts which call ./word2vec need no change; word2phrase, distance, word-analogy\n"
    "and compute-accuracy work likewise. OUTPUT.run is made for the run, and removed at the end. A line\n"
    "end is no word: there is no vector of </s>.\n"
    "\n"
#include "program_flags.def"
    "\n" KEYS_HELP;
#undef HELP_OF_WORD2VEC
#undef HELP_OF_WORD2PHRASE
#define HELP_OF_WORD2VEC(text)
#define HELP_OF_WORD2PHRASE(text) text
#define KEY(program, flag, key, fallback, help) HELP_OF_##program("  " flag "  " key " = " fallback ": " help "\n")
#define OWN(program, flag, fallback, help)      HELP_OF_##program("  " flag "  " help "\n")
static const char word2phrase_help[] =
    "Joins the same words as word2phrase.c, and writes the same bytes: a blank begins each line. It keeps what that program\n"
    "loses: the last word of a text without a line end, letters of words beyond 59, and rare bigrams of a large text.\n"
    "\n"
#include "program_flags.def"
    "\n" KEYS_HELP;
#undef HELP_OF_WORD2PHRASE
#undef HELP_OF_VOCAB_COUNT
#define HELP_OF_WORD2PHRASE(text)
#define HELP_OF_VOCAB_COUNT(text) text
#define KEY(program, flag, key, fallback, help) HELP_OF_##program("  " flag "  " key " = " fallback ": " help "\n")
#define OWN(program, flag, fallback, help)      HELP_OF_##program("  " flag "  " help "\n")
static const char vocab_count_help[] =
    "GloVe's vocab_count: counts the words of standard input, and prints lines of word, blank, count, the most frequent\n"
    "word first. Links to this program named vocab_count, cooccur, shuffle and glove run these commands, so GloVe's demo.sh\n"
    "needs no change.\n"
    "\n"
#include "program_flags.def"
    "\n" KEYS_HELP;
#undef HELP_OF_VOCAB_COUNT
#undef HELP_OF_COOCCUR
#define HELP_OF_VOCAB_COUNT(text)
#define HELP_OF_COOCCUR(text) text
#define KEY(program, flag, key, fallback, help) HELP_OF_##program("  " flag "  " key " = " fallback ": " help "\n")
#define OWN(program, flag, fallback, help)      HELP_OF_##program("  " flag "  " help "\n")
static const char cooccur_help[] =
    "GloVe's cooccur: counts which words of standard input occur near each other, and writes records of word, word (32-bit\n"
    "numbers of lines of the vocabulary, from 1) and count (a double) to standard output, sorted. Words that are not in the\n"
    "vocabulary are dropped first; a line's end ends a window. Threads add integers, so any number of them writes the same.\n"
    "\n"
#include "program_flags.def"
    "\n" KEYS_HELP;
#undef HELP_OF_COOCCUR
#undef HELP_OF_SHUFFLE
#define HELP_OF_COOCCUR(text)
#define HELP_OF_SHUFFLE(text) text
#define KEY(program, flag, key, fallback, help) HELP_OF_##program("  " flag "  " key " = " fallback ": " help "\n")
#define OWN(program, flag, fallback, help)      HELP_OF_##program("  " flag "  " help "\n")
static const char shuffle_help[] =
    "GloVe's shuffle: copies standard input to standard output as it is. The command glove draws the order of its records\n"
    "anew in each epoch, so nothing has to be shuffled before.\n"
    "\n"
#include "program_flags.def"
    "";
#undef HELP_OF_SHUFFLE
#undef HELP_OF_GLOVE
#define HELP_OF_SHUFFLE(text)
#define HELP_OF_GLOVE(text) text
#define KEY(program, flag, key, fallback, help) HELP_OF_##program("  " flag "  " key " = " fallback ": " help "\n")
#define OWN(program, flag, fallback, help)      HELP_OF_##program("  " flag "  " help "\n")
static const char glove_help[] =
    "GloVe's glove: trains on records of counts (train.loss = glove), and writes the same files. SAVE.run is made for the\n"
    "run, and removed at the end. 'sptx-w2v train --train.loss=glove' does all four programs' work at once, and has\n"
    "checkpoints.\n"
    "\n"
#include "program_flags.def"
    "\n" KEYS_HELP;

const char command_version[] = "sptx-w2v " SPTX_VERSION;

const struct command commands[] = {
    {"train", cmd_train, "train [CONFIG.ini] [--section.key=value ...] [--resume | --overwrite[=now]]",
     "train; write the run directory",
     "Counts the words of the corpus, encodes the corpus, trains, and writes the run directory run.dir (default: runs/NAME,\n"
     "where NAME is the name of the configuration file or corpus): config.ini, vocab.tsv, metrics.jsonl, and\n"
     "checkpoint-<step>/ with target.npy, context.npy and state.ini.\n"
     "\n"
     "  --resume      continue from the newest whole checkpoint of the run, or begin if there is none\n"
     "  --overwrite   replace the run that is in run.dir. It is removed when the new run has written its first checkpoint;\n"
     "                --overwrite=now removes it before training, for disks that have no space for both. Without this option\n"
     "                train refuses a run.dir that contains a run\n"
     "\n" KEYS_HELP "\n"
     "\n"
     "The loss is printed per pair (a target with one positive). Its size depends on the keys: compare runs by their\n"
     "held-out loss (train.held_out = 0.01) or by `evaluate`. metrics.jsonl also has the loss per example and per dot\n"
     "product.\n"
     "\n"
     "Ctrl-C, SIGTERM and SIGHUP end the run after a checkpoint; the exit code is 1, and --resume continues from there.\n"
     "\n"
     "device.gpus = G allows training on up to G GPUs. train uses as many as it expects to be fastest, or all of them if the\n"
     "run does not fit one, and prints a line that says why. device.share = columns uses all G. mpirun -n G sptx-w2v train ...\n"
     "starts G processes (ranks), on one machine or several. Each of them stores some columns of every row, with their\n"
     "optimizer state. The same G gives the same bytes, another G the same up to rounding, which for triples in bfloat16 is\n"
     "other random bits; --resume works with any G.\n"
     "Several ranks train in exact steps (train.update = batch); only one process can train lock-free (train.update =\n"
     "hogwild). Keys whose defaults differ on several GPUs are printed, with the values that one GPU would use."},
    {"plan", cmd_plan, "plan [CONFIG.ini] [--section.key=value ...] [--json]",
     "bytes by place, what a step moves, the most pairs a second; before anything is allocated",
     "Prints what train would need, before it allocates anything:\n"
     "  - bytes on the GPU, in host memory that the GPU can read (pinned), and in files;\n"
     "  - how many of the most frequent rows would be kept on the GPU (hot), and what share of all reads these answer;\n"
     "  - how many bytes a step moves over the link and in memory, and the largest number of pairs a second that this allows\n"
     "    (a pair is a target with one positive).\n"
     "If the run does not fit, plan says which keys to change, and the exit code is 1. Available memory is that of the\n"
     "machine or, in a container, what its limit allows. The speed of copies is measured once and stored in\n"
     "$XDG_CACHE_HOME/sptx-w2v or ~/.cache/sptx-w2v; bench measures it again. The corpus is counted and encoded into the run\n"
     "directory (or corpus.cache), where train reuses it.\n"
     "\n"
     "  --json        the same numbers as one line of JSON\n"
     "\n"
     "With device.backend = cuda and memory.gpu_budget = SIZE it plans for a GPU of that size, which this machine need not\n"
     "have. With device.ranks = G it plans for one of G processes on G machines; with device.gpus = G, or under mpirun, for\n"
     "one of the processes that train would start, and prints how many of the G GPUs train would use, and why.\n"
     "\n" KEYS_HELP},
    {"tune", cmd_tune,
     "tune [CONFIG.ini] [--section.key=value ...] [--minutes=5] [--trials=N] [--out=best.ini] [--pairs=FILE ...] [--analogies=FILE ...] [--anew]",
     "find keys for the data: trains on most of it, judges by the rest",
     "Trains on most of the data with different keys, judges each training by the rest of the data, and writes the best keys\n"
     "as a configuration file. The rest is: for lists, a tenth of each list's items (judged by recall@20); for a graph, a\n"
     "tenth of the edges, chosen so that connected nodes stay connected (MRR among 1,000 nodes); for triples, a tenth of the\n"
     "triples (MRR among all entities); for text, a fiftieth of the windows (their loss). Your own test files are not read.\n"
     "\n"
     "A trial is one choice of keys. The first trial has the keys as given; later ones change only keys that are not set,\n"
     "first at random, then near the best trials. Every trial is trained for a third of the epochs; the best third of these\n"
     "for all epochs; the best third of those for three times as many (successive halving). If train.epochs is set, it is\n"
     "the largest number. Each line of the output is one training; * marks the best so far of its length, = a result that an\n"
     "earlier call has found.\n"
     "\n"
     "  --minutes=5       time limit\n"
     "  --trials=N        most trials to begin. Without --minutes there is no time limit, and the same seed (train.seed)\n"
     "                    gives the same answer if training is exact (train.update = batch)\n"
     "  --out=best.ini    file for the best keys; its comments list what was tried\n"
     "  --pairs=FILE --analogies=FILE\n"
     "                    text only: judge by these files, as evaluate does. Keys that change the loss itself are then\n"
     "                    tried, too\n"
     "  --anew            forget the results of earlier calls\n"
     "\n"
     "Ctrl-C keeps the best result so far. Results are stored in RUN.tune/tried.tsv, beside run.dir, and the same call\n"
     "continues from them. Only one process at a time can use RUN.tune; tune refuses a RUN.tune that contains files of\n"
     "others.\n"
     "\n" KEYS_HELP},
    {"export", cmd_export, "export RUN --format=F --out=FILE [--type=T] [--columns=N] [--measure] [--table=TABLE] [--classes=N] "
     "[--lists | --features [--item-features=FILE] [--feature-words=COLUMNS]]\n"
     "sptx-w2v export --check=FILE",
     "write the vectors in a format that other programs read",
     RUN_HELP
     "\n"
     "\n"
     "  --format=F    word2vec-bin   for gensim, word2vec and most other programs\n"
     "                word2vec-text  the same as text, with the nine digits that a float32 needs\n"
     "                glove-text     the same without the first line; gensim reads it with no_header=True\n"
     "                npy            NumPy: float32 [rows x dim]\n"
     "                fvecs          faiss: the number of columns before each row, as int32\n"
     "                fbin           DiskANN, cuVS, usearch: numbers of rows and columns as uint32, then the rows\n"
     "                i8bin, u8bin   the same with int8; with uint8 or binary\n"
     "                bvecs          faiss: uint8 or binary, the number of bytes before each row, as int32\n"
     "                safetensors    PyTorch and others: one tensor, with the table's name\n"
     "                projector      Embedding Projector: the vectors in FILE, words and counts in FILE.metadata.tsv\n"
     "                fasttext       fastText's .bin of words: both tables and the rows of all n-grams; fastText and gensim\n"
     "                               can continue to train it, and every command here accepts it as RUN\n"
     "                classes        lines of word and class, as word2vec -classes writes them; needs --classes\n"
     "                formats without words have their rows in the order of vocab.tsv\n"
     "  --out=FILE    the file, which is replaced only when the new one is complete. /dev/stdout and pipes work, too\n"
     "  --type=T      number type: f32; for npy, fbin and safetensors also bf16 or f16, which take half the space. bf16 is\n"
     "                exact for a run with model.precision = bfloat16. NumPy has no bfloat16: there npy has a field\n"
     "                weights_bfloat16 of uint16, the upper halves of float32\n"
     "                int8    for npy, safetensors, i8bin: round(x / scale), a quarter of the space. A row's scale is its\n"
     "                        largest magnitude / 127; npy has the scales in FILE.scales.npy, safetensors in a tensor. i8bin\n"
     "                        has one scale for all rows, which are scaled to length 1 first\n"
     "                uint8   for u8bin and bvecs: the numbers of i8bin plus 128\n"
     "                binary  for npy, safetensors, u8bin, bvecs: a bit a column, 1 if a row of length 1 is above the mean of\n"
     "                        all rows (FILE.mean.npy). numpy.unpackbits unpacks them\n"
     "                If a format cannot hold f32, the first type that it can hold is the default\n"
     "  --columns=N   fewer columns: rows are multiplied by FILE.rotation.npy [columns x N], the principal axes that keep most\n"
     "                of the rows' dot products; multiply queries by it, too. With --type=binary N may also be larger than the\n"
     "                run's columns: the axes are then random, and more bits lose less. At most 1024 columns before and after\n"
     "  --measure     says which share of the ten rows nearest to a float32 query is still found, over 1,000 queries among all\n"
     "                rows. For int8, uint8, binary and --columns it is always said, but among the first 100,000 rows\n"
     "  --table=T     target, context, sum, normsum (target plus context row, each scaled to unit length first; a row of\n"
     "                zeros stays zeros) or propagated\n"
     "  --classes=N   divides the words into at most N classes by the directions of their vectors (k-means of unit vectors)\n"
     "  --features    write the rows of features (corpus.item_features, list_features) instead: each as the vector of a new\n"
     "                item with this feature alone\n"
     FEATURES_HELP("                ")
     "  --lists       also the rows of lists, after those of items; with triples, of relations, after those of entities\n"
     "  --check=FILE  says whether FILE and the files beside it (FILE.rotation.npy, .mean.npy, .scales.npy) are of one export.\n"
     "                If a later export was killed while it replaced them, some are older than others\n"
     "\n" TABLES_HELP},
    {"nearest", cmd_nearest,
     "nearest RUN WORD... [--k=10] [--metric=cosine|dot] [--table=TABLE] [--query=TABLE] [--among=TABLE] [--lists] "
     "[--titles=FILE] [--item-features=FILE] [--feature-words=COLUMNS] [--type=T] [--columns=N]",
     "the words nearest to words: lines of word <TAB> score",
     RUN_HELP "\n"
              "\n"
              "  --k=10              number of answers\n"
              "  --metric=cosine     or dot, the dot product\n"
              "  --table=TABLE       the table that the word's vector is from, and that is searched\n"
              "  --query=TABLE       only the table that the word's vector is from: target, context, sum, normsum (target plus\n"
              "                      context row, each scaled to unit length first) or propagated\n"
              "  --among=TABLE       only the table that is searched. If just one of --query and --among is given, the other is\n"
              "                      target\n"
              "  --type=T            the rows searched are made as small as export makes them by --type (int8, binary, ..)\n"
              "  --columns=N         or by an N of its own, so that one sees what is lost; the queries stay float32\n"
              "  --lists             rows of lists are searched, too. In a run of documents, documents alone are then searched, in a\n"
              "                      run of triples relations alone, and WORD is the name of one\n"
              "  --titles=FILE       lines of an id and its title. Titles are printed as a last column, and WORD may be a title\n"
              FEATURES_HELP("                      ")
              "\n" TABLES_HELP
              "In a run with item features WORD may be a new item or a feature, such as genre:noir: its vector is that of a new item\n"
              "with this feature alone.\n"
              "In a run of walks over triples the relations are words, relation:NAME, and answers without --lists; WORD may be NAME\n"
              "alone if no entity has this name.\n"
              "If words share rows of their n-grams (examples.subwords, and models of fastText), WORD may be a word that training\n"
              "never saw. Put a word that begins with -- after a single --. Without a WORD the program asks for words at the\n"
              "terminal; the vectors of several words on one line are summed.\n" DEVICE_HELP},
    {"analogy", cmd_analogy, "analogy RUN A B C [--k=10]", "A is to B as C is to ?",
     RUN_HELP "\n"
              "\n"
              "Prints lines of word <TAB> score: the words nearest to B - A + C by cosine, without A, B and C themselves, in the\n"
              "default table of nearest. Without words the program asks for them at the terminal.\n"
              "\n"
              "  --k=10        number of answers\n"
              "\n" DEVICE_HELP},
    {"evaluate", cmd_evaluate,
     "evaluate RUN [--pairs=FILE ...] [--analogies=FILE ...] [--restrict=30000] [--train=LISTS --held-out=LISTS] "
     "[--format=F] [--groups=FILE --met=5 --sample=2000] [--labels=FILE --share=0.5] [--edges=FILE --known=FILE --directed] "
     "[--triples=FILE --known=FILES --sample=N] [--labelled=FILE --thresholds=FILE] [--k=20] [--table=TABLE] [--score=SCORE] "
     "[--item-features=FILE] [--list-features=FILE] [--feature-words=COLUMNS] [--new-share=S]",
     "similarity, analogies, held-out items, links and triples, groups, labels, each with its coverage",
     RUN_HELP
     "\n"
     "\n"
     "  --pairs=FILE      lines of word, word, score: Spearman's rho; as all test files, several may be given\n"
     "  --analogies=FILE  lines of a b c d under lines ': section': accuracy of 3CosAdd\n"
     "  --restrict=30000  analogies: consider only this many of the most frequent words; 0: all\n"
     "  --train=LISTS --held-out=LISTS\n"
     "                    recall, NDCG and hit rate at k of each list's held-out items. Both files are read as the run's\n"
     "                    corpus was (corpus.min_rating, corpus.columns .. in its config.ini, unless the command line sets\n"
     "                    them), each as lists or as pairs, depending on its first lines. The output also has counts.\n"
     "                    trained: held-out items that the same list has in --train, which are skipped, and those that the run\n"
     "                    was trained on in the same list, which are judged, with a warning. cold: lists that --train lacks,\n"
     "                    which are skipped. without-row: judged lists without a row in the run, which are folded in, as\n"
     "                    recommend does, or otherwise replaced by their items' mean. If all lists are folded in, the score's\n"
     "                    name says so (user-cosine folded)\n"
     "  --format=F        read both files as F: lists, pairs, adjacency\n"
     "  --groups=FILE     lines of a word and its groups, as generate writes them beside a corpus (FILE.groups.tsv): for\n"
     "                    each column of groups, the share of a row's k nearest rows by cosine that are of its own group (of\n"
     "                    at most k, or all other rows of the group), and what random vectors would have\n"
     "  --met=5           groups: ask for rows that occur at least this often in the corpus. All rows up to the last of\n"
     "                    these are searched\n"
     "  --sample=2000     groups: ask for at most this many rows, the same ones each time\n"
     "  --labels=FILE     lines of a node or document and its labels: micro and macro F1 of one logistic regression for\n"
     "                    each label, trained on a share of the labelled nodes. Every other node is given as many labels\n"
     "                    as it has. Means and standard deviations of ten shuffles, those of\n"
     "                    numpy.random.default_rng(0 .. 9).permutation\n"
     "  --share=0.5       labels: the share that is trained on; several shares are separated by commas\n"
     "  --edges=FILE      links held out of a graph, in a file like that of corpus.format = graph. AUC against as many\n"
     "                    unlinked pairs; MRR and hits@10 of each link's end among 1,000 nodes not linked to its other end,\n"
     "                    or among all such nodes if there are fewer (the output has their largest number, among, and the\n"
     "                    number of ends that were ranked among all, all). Two kinds of links are skipped and counted:\n"
     "                    left-out, of which the run does not know a node; and trained, which the run was trained on. Scores:\n"
     "                    dot, cosine and hadamard (a regression over products of columns) of the table's rows; cross and\n"
     "                    cross-cosine of both tables. For a run of walks over triples, the file has triples, whose relations\n"
     "                    are not asked\n"
     "  --known=FILE      links: those that the run was trained on, which are not counted as wrong answers; hadamard needs\n"
     "                    them. Default: the links of the run's graph, if it was trained on one (corpus.format = graph)\n"
     "  --directed        links: only the second node of a link is ranked. Default: both are, unless the run's graph is\n"
     "                    directed\n"
     "  --triples=FILE    held-out triples, in a file that is read as the run's corpus was. Each tail is ranked by the product\n"
     "                    of head and relation; with triples.reciprocal = yes, each head by the product of tail and the\n"
     "                    relation's second row. Prints MRR (the mean of 1 / rank; also of tails and heads alone) and the\n"
     "                    shares of ranks up to 1, 3, 10 (hits@). Other known answers are left out of each ranking: those\n"
     "                    in FILE, in RUN/corpus.ids and in the files of --known. Equal scores share their middle rank.\n"
     "                    unknown: triples with a name that the run does not know, which are misses, as in published\n"
     "                    figures; a second line then has the figures without them. trained: number of triples that the run\n"
     "                    was trained on, with a warning. The last line has the MRR of two rankings without a model: the most\n"
     "                    frequent entities first, and a random order\n"
     "  --known=FILES     triples: files of true triples, separated by commas, such as the one for validation. A file of which\n"
     "                    the run knows no triple is refused\n"
     "  --sample=N        triples: rank among this many entities, half of them drawn evenly and half by how often they occur.\n"
     "                    Default: all, or 10000 if there are more than a million\n"
     "  --labelled=FILE --thresholds=FILE\n"
     "                    triple classification: lines of head, relation, tail and a label, 1 or true if the triple is true,\n"
     "                    0, -1 or false if it is false. A triple is called true if its score (see help score) is at least the\n"
     "                    threshold of its relation, which is the one that calls most triples of --thresholds rightly; a\n"
     "                    relation without both true and false triples there has the threshold of all. Prints the share of\n"
     "                    right answers (accuracy) and F1 of the true ones. unknown: triples with a name that the run does not\n"
     "                    know, which count as wrong; a second line then has the figures without them\n"
     "  --k=20            held-out items, groups: number of answers that are judged\n"
     "  --table=TABLE     table whose rows are compared, by cosine if not said otherwise: target, context, sum, normsum\n"
     "                    (target plus context row, each scaled to unit length first) or propagated. Default: that of\n"
     "                    nearest\n"
     "  --score=SCORE     held-out items: how a list's items choose others, instead of --table. Default: the one that fits\n"
     "                    what the run was trained on; the output names it\n" SCORES_HELP
     FEATURES_HELP("                    ") LISTS_HELP("                    ") SHARE_HELP("                    ")
     "                    With new items the output has four lines: held-out items that were trained, among trained ones\n"
     "                    and among all; new ones, among new ones and among all. A new item without a known feature is\n"
     "                    counted as unknown and missed\n"
     "\n" DEVICE_HELP},
    {"recommend", cmd_recommend,
     "recommend RUN --lists=FILE [--format=F] [--name=LIST ...] | --list=NAME ... | --items=A,B,... | --head=X ... --relation=R | "
     "--tail=Y ... --relation=R [--k=20] [--score=SCORE] [--titles=FILE] [--among=N|new | --candidates=FILE] [--item-features=FILE] "
     "[--list-features=FILE] [--feature-words=COLUMNS] [--new-share=S] [--seen] [--json]",
     "items for lists: lines of list <TAB> item <TAB> score; tails and heads of triples",
     RUN_HELP
     "\n"
     "\n"
     "Prints, for each list, the items that suit it best, without the list's own items. Items that the run does not know are\n"
     "left out, with a warning that counts them; a list without any known item gets no line.\n"
     "\n"
     "  --lists=FILE      the lists, read as the run's corpus was (corpus.min_rating, corpus.columns .. in its config.ini,\n"
     "                    unless the command line sets them), as lists or as pairs, depending on its first lines\n"
     "  --format=F        read the file as F: lists, pairs, adjacency\n"
     "  --name=LIST       only this list of the file; may be given several times\n"
     "  --list=NAME       instead of --lists: a list that the run was trained on, with its training items (from\n"
     "                    RUN/corpus.ids), or a paper of citations, or a node of a graph; may be given several times\n"
     "  --items=A,B,...   instead of --lists: the items of one list, which the output calls 'items'; may be given several\n"
     "                    times. An item whose name contains a comma is given alone. With --titles an item may be a title\n"
     "  --head=X --relation=R\n"
     "                    for a run of triples: the tails that suit head and relation best, in lines of head, relation, tail,\n"
     "                    score. Triples that the run was trained on are left out. --head may be given several times\n"
     "  --tail=Y --relation=R\n"
     "                    likewise the heads, if the run was trained with triples.reciprocal = yes\n"
     "  --k=20            number of answers for each list or triple\n"
     "  --score=SCORE     how a list's items choose others. Default: the one that fits what the run was trained on, as for\n"
     "                    evaluate\n" SCORES_HELP
     "  --titles=FILE     lines of an id and its title. Titles are printed as a last column\n"
     "  --among=N         recommend only the first N words of vocab.tsv, usually the most frequent ones; 0: all. This option,\n"
     "                    --candidates and --score are for lists, not for --head and --tail\n"
     "  --among=new       recommend only new items: those that have features and were not in training\n"
     FEATURES_HELP("                    ") LISTS_HELP("                    ") SHARE_HELP("                    ")
     "  --candidates=FILE recommend only the items of this file, one on each line\n"
     "  --seen            also recommend a list's own items, a node's neighbours, and answers in triples of training\n"
     "  --json            one JSON object on each line for each list: {\"list\": .., \"score\": \"target\", \"known\": 3, \"unknown\":\n"
     "                    1, \"items\": [{\"item\": .., \"score\": 0.5, \"title\": ..}, ..]}. known, unknown: numbers of the list's\n"
     "                    items. score is \"user-cosine folded\" for a list that was not trained and is therefore folded in\n"
     "\n" DEVICE_HELP},
    {"score", cmd_score, "score RUN --triples=FILE [--validation=FILE]", "how likely triples are true: lines of head, relation, tail, score",
     "Prints each triple of FILE with its score, in lines of head <TAB> relation <TAB> tail <TAB> score. RUN is a run\n"
     "directory of training with corpus.format = triples, or a checkpoint in it. The score is that of the tail as recommend\n"
     "prints it; with triples.reciprocal = yes it is the mean of this and of the head's score. A triple with a name that the\n"
     "run does not know has the score nan, and a warning counts such triples.\n"
     "\n"
     "  --triples=FILE     the triples, in a file that is read as the run's corpus was\n"
     "  --validation=FILE  true triples that the run was not trained on: lines then end with the probability that the triple\n"
     "                     is true. A logistic regression of the score is fitted to these triples and to false ones: each true\n"
     "                     triple once with another head and once with another tail, drawn evenly among entities. A drawn\n"
     "                     triple that training or FILE has is dropped. So a probability is meant for as many true triples as\n"
     "                     false ones, and false ones that look likely (a person's birthplace is another city) get too high\n"
     "                     probabilities. If the lines\n"
     "                     have a fourth column, 1 for true and 0 or -1 for false, these triples are used as they are. A\n"
     "                     relation with at least 20 true triples in FILE has a regression of its own\n"
     "\n"
     "--device.threads=N: number of threads. Scores are computed on the CPU."},
    {"infer", cmd_infer, "infer RUN --text=FILE [--names] [--epochs=N]", "rows for documents that a run was not trained on",
     RUN_HELP
     "\n"
     "\n"
     "Prints the row of each document of FILE: its name, a tab, and the row's values with blanks between them. RUN was\n"
     "trained with corpus.format = documents. Only the new rows are trained, in the way in which the run's rows were. The\n"
     "same words always give the same row. Words that the run does not know are left out.\n"
     "\n"
     "  --text=FILE   the words of a document on each line. Its name is the number of the line. If the run was trained on a\n"
     "                table and FILE has its columns, they are read from it\n"
     "  --names       each line begins with the name of its document, as in the corpus of the run\n"
     "  --epochs=N    number of passes over each document. Default: as many as the run made\n"
     "\n" DEVICE_HELP},
    {"report", cmd_report,
     "report RUN --out=FILE [--titles=FILE] [--labels=FILE | --colour=COLUMN [--item-features=FILE] [--feature-words=COLUMNS]] [--top=5000] "
     "[--search=20000] [--table=TABLE] [--lists] [--evaluation=FILE ...]",
     "a page for the browser: curves, a map, nearest rows to search",
     RUN_HELP
     "\n"
     "\n"
     "FILE is a single HTML page of less than 10 MB, which a browser opens without a server or a network: what was trained\n"
     "on what; loss, held-out scores, speed and learning rate over time; a map of the most frequent rows; their nearest\n"
     "rows, as 'nearest' finds them; the run's keys.\n"
     "\n"
     "  --out=FILE         the page, which is replaced only when the new one is complete. /dev/stdout and pipes work, too\n"
     "  --titles=FILE      lines of an id and its title: the page shows titles beside ids, and finds rows by title\n"
     "  --labels=FILE      lines of a row and its labels: the map is coloured by each row's first label. Default: by\n"
     "                     clusters, which are named after their most frequent rows\n"
     "  --colour=COLUMN    the map is coloured by each item's first value of this column of corpus.item_features, such as\n"
     "                     genre; numbers are ranges, as training says\n"
     "  --item-features=FILE, --feature-words=COLUMNS\n"
     "                     another file than corpus.item_features for --colour; its columns whose words are features\n"
     "  --top=5000         number of rows on the map, at most 20,000. All are compared with each other: 5,000 take seconds\n"
     "                     and 20,000 minutes on two cores\n"
     "  --search=20000     number of rows whose ten nearest rows the page has: at least --top, at most what 10 MB hold\n"
     "  --table=TABLE      target, context, sum, normsum or propagated. Default: that of nearest\n"
     "  --lists            also show and find the rows of lists\n"
     "  --evaluation=FILE  the output of evaluate (evaluate RUN ... > FILE), to show in the page; may be given several times\n"
     "\n" DEVICE_HELP},
    {"phrases", cmd_phrases,
     "phrases CORPUS... [--out=FILE] [--min-count=5] [--threshold=T[,T..]] [--passes=N] [--score=word2phrase|default|npmi] "
     "[--delimiter=_] [--connectors=FILE] [--memory=SIZE]",
     "join words that often follow each other: new york -> new_york",
     "Reads text and writes it with phrases joined; train does the same in one run with corpus.phrases = yes. CORPUS is one\n"
     "or more files or directories, also compressed ones, or - for standard input. Lines stay lines. Scores and phrases are\n"
     "those of word2phrase and of gensim's Phrases, but no count is dropped to save memory.\n"
     "\n"
     "  --out=FILE         the text, which is replaced only when the new one is complete. Default: standard output\n"
     "  --min-count=5      bigrams counted fewer times are not joined\n"
     "  --threshold=T      bigrams with a higher score are joined; T,T.. gives each pass its own. Default: 100 for\n"
     "                     word2phrase, 10 for default, 0.5 for npmi\n"
     "  --passes=N         number of passes over the text. Each joins two neighbours: two passes make phrases of up to four\n"
     "                     words\n"
     "  --score=S          word2phrase, default (gensim's) or npmi; 'sptx-w2v help keys' has the formulas\n"
     "  --delimiter=_      text between the words of a phrase\n"
     "  --connectors=FILE  words that may be within a phrase but neither begin nor end it: bank_of_america\n"
     "  --memory=SIZE      memory for counts of bigrams. If they need more, the text is read several times, with the same\n"
     "                     result\n"
     "\n" KEYS_HELP},
    {"word2vec", cmd_word2vec, "word2vec -train FILE -output FILE [-flag value ...] [--section.key=value ...]",
     "word2vec.c's command line: trains on text and writes vectors or classes", word2vec_help},
    {"word2phrase", cmd_word2phrase, "word2phrase -train FILE -output FILE [-min-count 5] [-threshold 100] [-debug 2]",
     "word2phrase.c's command line: joins words that often follow each other", word2phrase_help},
    {"vocab_count", cmd_vocab_count, "vocab_count [-flag value ...] < TEXT > VOCAB", "GloVe's vocab_count: counts words", vocab_count_help},
    {"cooccur", cmd_cooccur, "cooccur [-flag value ...] < TEXT > RECORDS",
     "GloVe's cooccur: counts pairs of words that occur near each other", cooccur_help},
    {"shuffle", cmd_shuffle, "shuffle [-flag value ...] < RECORDS > RECORDS", "GloVe's shuffle: copies records as they are", shuffle_help},
    {"glove", cmd_glove, "glove [-flag value ...] [--section.key=value ...]",
     "GloVe's command line: trains on records of counts and writes vectors", glove_help},
    {"distance", cmd_distance, "distance FILE", "word2vec's distance: asks for words and prints the 40 nearest",
     "FILE contains vectors as word2vec.c writes them, binary or text, or is a run directory. Each line of standard input is\n"
     "a question; the vectors of its words are summed. The program ends at a line EXIT, or at the end of the input.\n"
     "\n" DEVICE_HELP},
    {"word-analogy", cmd_word_analogy, "word-analogy FILE",
     "word2vec's word-analogy: asks for three words and prints the 40 nearest",
     "As distance, for lines of three words A B C: A is to B as C is to ?\n"
     "\n" DEVICE_HELP},
    {"compute-accuracy", cmd_compute_accuracy, "compute-accuracy FILE [THRESHOLD] < QUESTIONS",
     "word2vec's compute-accuracy: analogies of standard input, by section",
     "Prints for each section of questions (lines of A B C D under a line ': section') how many are answered by D. The first\n"
     "five sections are semantic and the others syntactic, as in questions-words.txt. Upper and lower case count as the\n"
     "same.\n"
     "\n"
     "  THRESHOLD     consider only this many of the most frequent words; 0, the default: all\n"
     "\n" DEVICE_HELP},
    {"generate", cmd_generate, "generate books|papers|words|graph|triples --out=FILE [--rows=N --lists=N --edges=N --relations=N --groups=N\n"
     "                                       --noise=S --held-out=N --seed=S]",
     "a synthetic corpus in the shape of a run",
     "Kinds: books: reading lists (corpus.format = lists); papers: citations (adjacency); words: sentences (text); graph:\n"
     "edges drawn as by R-MAT (graph); triples: a knowledge graph whose relations lead from group to group (triples).\n"
     "The same options give the same bytes. Popularity falls as 1 / rank (Zipf's law with exponent 1), over all rows and\n"
     "within each group. evaluate --groups=FILE.groups.tsv measures how much of the groups a run has found. A graph has no\n"
     "groups. Of triples, the best filtered MRR of the held-out ones is printed, too: if groups and relations are known, and\n"
     "if the groups must be inferred from the triples of training; beside it the MRR of the most popular entities, and of a\n"
     "random order. --seed decides which triples are drawn; the entities' groups and the relations do not depend on it.\n"
     "\n"
     "  --out=FILE    the corpus, and FILE.groups.tsv beside it, with each row's series, fields, topics or cluster. If FILE\n"
     "                ends in .ids, it is the encoded corpus, with its words in FILE.vocab.tsv (not for graph and triples);\n"
     "                if it ends in .zst, it is compressed\n"
     "  --rows=N      number of rows: 50,000 books, 100,000 papers, 20,000 words, 100,000 nodes or 10,000 entities\n"
     "  --lists=N     number of lists (100,000), citing papers (100,000) or sentences (200,000)\n"
     "  --edges=N     number of edges of a graph (1,000,000), or of triples (500,000)\n"
     "  --relations=100\n"
     "                number of relations of triples\n"
     "  --groups=256  number of groups of entities, a multiple of 16: 16 groups are a type, and a relation leads from the\n"
     "                groups of one type to those of another one\n"
     "  --noise=0.1   share of triples whose tail is of any group\n"
     "  --held-out=N  number of triples drawn for FILE.valid, and for FILE.test; those that FILE has as well, and repeats, are\n"
     "                left out, so that the files have fewer. Default: 10,000, at most a twentieth of --edges\n"
     "  --seed=S      seed of the draws"},
    {"bench", cmd_bench,
     "bench transfer|train|ranks|walks|memory [CONFIG.ini] | read FILE [--section.key=value ...] [--json] [--rows=N --dim=N --seconds=T --steps=N]",
     "measure this machine",
     "transfer: rows moved between the GPU and tables in each place; train: the speed of a configuration, with tables opened\n"
     "and filled as train does it, but no checkpoints; ranks: the same for the processes that mpirun started, one line a\n"
     "rank (mpirun -n 2 sptx-w2v bench ranks my.ini); walks: how fast walks over a graph are drawn, without training;\n"
     "memory: how much memory a table takes; read: how fast a FILE of data is read, its words counted, and encoded as ids or\n"
     "a graph (the keys of corpus say how). Each result except that of ranks names the command, device and date.\n"
     "\n"
     "  --json        each result as a line of JSON\n"
     "  --rows=N --dim=N\n"
     "                transfer, memory: rows and columns of the table\n"
     "  --span=SIZE   transfer: bytes of host memory over which the rows of the last part are spread\n"
     "  --brief       transfer: without the last part\n"
     "  --file=FILE   transfer: path beside which a table in a file has its unnamed working file\n"
     "  --seconds=T --steps=N\n"
     "                train, ranks, walks: how long to measure\n"
     "\n" KEYS_HELP},
    {"devices", cmd_devices, "devices", "what the program sees: GPUs, cores, memory, the backend that auto picks",
     "Takes no arguments. Rows of a table in host memory are in CUDA's managed memory where the system supports that, which\n"
     "is faster, and otherwise in page-locked memory; SPTX_PIN_ROWS=1 in the environment of any command chooses the latter."},
    {"config", cmd_config, "config [CONFIG.ini] [--section.key=value ...]",
     "every key resolved, as an INI with its help as comments",
     "Without a file: the defaults. Values that depend on the machine (device.backend, train.batch, memory.*) stay auto.\n"
     "\n" KEYS_HELP},
    {"help", cmd_help, "help [COMMAND|keys [SECTION]|SECTION.KEY|formats|man|bash|zsh]",
     "this list, a command's options, every key of the configuration, or formats of data",
     "'sptx-w2v COMMAND --help' is the same as 'sptx-w2v help COMMAND'.\n"
     "\n"
     "  keys          every key of the configuration, with its default and range; train.epochs: this key alone;\n"
     "                keys walks: those of the section [walks]; without \"keys\", too, where no command has the section's name\n"
     "  formats       what files of data may look like, and the keys that say how they are read\n"
     "  man           everything as a manual page: sptx-w2v help man | man -l -\n"
     "  bash, zsh     completion for a shell: source <(sptx-w2v help bash). make install installs these and the manual page"},
    {0}};

enum { NAMES_MOST = 32 }; /* most commands to which a misspelt one is compared */

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
    OWNED char *argument = mem_alloc(strlen(key) + strlen(value) + sizeof "--=", 1, "an option");
    if (!argument) return -1;
    sprintf(argument, "--%s=%s", key, value);
    return config_argument(config, argument, "command line");
}

int command_ranks(struct ranks *ranks, const char *command) {
    char what[128];
    snprintf(what, sizeof what, "%s %s", command_version, command);
    return ranks_open(ranks, what);
}
