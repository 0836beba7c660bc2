#!/usr/bin/env python3
"""How fast G ranks would be, on paper: what one GPU was measured to do, and what its numbers come to over more of them.

    scripts/simulate_ranks.py [RANKS...]        1 2 4 8 16 32 64

One step of a batch, in ms, where each of G ranks has C / G columns:

    rows      (fixed + column x C / G) x passes     reading and writing rows; fixed: what a row costs however narrow it is
    sum       far:   2 x (G - 1) / G x 4 x dots / bandwidth + 2 x latency + G x message    each rank adds up its share, all gather
              near:  8 x (G - 1) x dots / bandwidth + latency    words of 8 bytes into each peer's memory while rows are read
    step      rows + sum (far: one after the other); the larger of both + latency (near)
    all       the larger of step + seen, and batch; batch: making it, on every rank; seen: what of that shows beside the step

passes: far, rows are read for the parts and again for what their sums lead to; near, they wait on the multiprocessor in between,
which is what a kernel can reach (what ours does is measured in results/gpus.md). All rows are on the GPUs. A rank's gain ends where rows
are so narrow that `fixed` is most of them, or where the sum is, which no number of ranks makes shorter.
"""
import argparse

# One H200, measured on 2026-11-23: ms of a step with all columns and with half of them, of making its batch, and of all together.
SHAPES = {
    "14,886,544 x 188, SGD": {"targets": 32768, "contexts": 68, "step": 1.06, "half": 0.64, "batch": 0.23, "all": 131072 / 113.0e3,
                              "passes": 1.4},
    "2,829,853 x 400, Adamax": {"targets": 16384, "contexts": 68, "step": 2.84, "half": 1.51, "batch": 0.21, "all": 65536 / 22.9e3,
                                "passes": 1.2},
}
MOST_RANKS = 1024
# GB/s each way of a rank, ms of latency, ms of each message.
WAYS = {
    "near: NVLink of one machine": {"near": True, "bandwidth": 390, "latency": 0.0014, "most": 8},
    "far: 200 Gb/s a GPU": {"near": False, "bandwidth": 25, "latency": 0.035, "message": 0.001, "most": MOST_RANKS},
    "far: 400 Gb/s a GPU": {"near": False, "bandwidth": 50, "latency": 0.035, "message": 0.001, "most": MOST_RANKS},
}


def fixed_of(shape):
    """Returns the ms of a step that do not depend on the number of columns: a line through both measured widths, at 0 columns."""
    return 2 * shape["half"] - shape["step"]


def parts_of(shape, way, ranks):
    """Returns the ms of rows, of the sum, and of both together: near, the two overlap; far, one follows the other."""
    fixed, dots = fixed_of(shape), shape["targets"] * shape["contexts"]
    rows = fixed + (shape["step"] - fixed) / ranks
    seen = shape["all"] - shape["step"]
    if ranks == 1:
        return rows, 0, rows + seen
    if way["near"]:
        total = 8 * (ranks - 1) * dots / way["bandwidth"] / 1e6
        step = max(rows, total) + way["latency"]
    else:
        rows *= shape["passes"]
        total = 2 * (ranks - 1) / ranks * 4 * dots / way["bandwidth"] / 1e6 + 2 * way["latency"] + ranks * way["message"]
        step = rows + total
    return rows, total, max(step + seen, shape["batch"])


def count_of(text):
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_RANKS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of ranks from 1 to {MOST_RANKS}")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", metavar="RANKS", type=count_of, nargs="*")
    counts = parser.parse_args().ranks or [1, 2, 4, 8, 16, 32, 64]
    for name, shape in SHAPES.items():
        for way_name, way in WAYS.items():
            print(f"{name}; {way_name}\n\n| ranks | rows, ms | sum, ms | all, ms | M pairs/s | times one GPU |")
            print("|---|---|---|---|---|---|")
            one = parts_of(shape, way, 1)[2]
            for ranks in counts:
                if ranks > way["most"]:
                    continue
                rows, total, all_ = parts_of(shape, way, ranks)
                rate = 4 * shape["targets"] / all_ / 1e3
                print(f"| {ranks} | {rows:.2f} | {total:.2f} | {all_:.2f} | {rate:.0f} | {one / all_:.1f} |")
            print()


if __name__ == "__main__":
    main()
