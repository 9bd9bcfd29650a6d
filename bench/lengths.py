"""Measures how well lengths of builds can be predicted, and the value of the predictions.

    pip install lightgbm pandas scikit-learn
    python3 bench/lengths.py target/release/maitre ci_lrts_2020_2022.csv.gz

Learners predict the length of every job of a trace with ids such as `PR-12#3`. The predictions go
into the column `estimate_s` of a copy, which `balanced:user` replays. Each is replayed REPLAYS
times with predictions moved by about 1 %, because single replays differ by some percent of the
gain.
"""

import json
import os
import subprocess
import sys
import tempfile

import lightgbm
import numpy
import pandas

SLOTS, LOAD = 64, 0.9
REPLAYS, JITTER = 5, 0.01
FOLDS, BLOCKS = 5, 12
# The properties of similar jobs, and the number of nearest ones that are used.
ALIKE = {
    "type": (["type"], 5),
    "type+pr": (["type", "pr"], 3),
    "type+commit": (["type", "locality"], 3),
    "tenant": (["tenant"], 3),
    "pr": (["tenant", "pr"], 3),
    "commit": (["tenant", "locality"], 3),
}
WORDS = ["type", "tenant", "stages"]


def main():
    maitre, path = sys.argv[1:]
    trace = read(path)
    ends = ends_under(maitre, path, trace, "balanced:history")
    truth = trace.duration_s.to_numpy()
    fifo, perfect = mean_wait(maitre, trace, truth, "fifo"), mean_wait(maitre, trace, truth)
    print(f"{'fifo':40} {fifo:8.0f}\n{'balanced:perfect':40} {perfect:8.0f}")
    for name, lengths in predictions(trace, ends):
        waits = [mean_wait(maitre, trace, lengths * off) for off in jitters(len(truth))]
        gains = [100 * (fifo - wait) / (fifo - perfect) for wait in waits]
        wrong = numpy.abs(numpy.log(numpy.maximum(lengths, 1) / numpy.maximum(truth, 1)))
        print(
            f"{name:40} {numpy.mean(waits):8.0f}"
            f" {numpy.mean(gains):4.0f} % ({min(gains):.0f}-{max(gains):.0f})"
            f" off by {100 * numpy.expm1(numpy.median(wrong)):.0f} % or more in half",
            flush=True,
        )


def predictions(trace, ends):
    truth, noise = trace.duration_s.to_numpy(), numpy.random.default_rng(1)
    yield "true lengths", truth
    for spread in (0.1, 0.2, 0.3, 0.5, 1.0):
        off = numpy.exp(noise.normal(0, spread, len(truth)))
        yield f"true lengths, spread {spread}", truth * off
    for name, part in (("as neighbours differ", 1), ("by a part of that", 0.5**0.5)):
        off = numpy.exp(part * differences(trace, noise))
        yield f"true lengths, off {name}", numpy.maximum(truth * off, 1)
    yield "means of twins", twins(trace)
    past = before(trace, ends)
    tell_how_little(past)
    typical = past["type mean"].fillna(numpy.log(truth.mean()))
    yield "mean of the type", numpy.exp(typical).to_numpy()
    last = past["type+pr 0"].fillna(typical)
    yield "the last of its type and request", numpy.exp(last).to_numpy()
    for losses in ("l2 s", "l1 log"):
        yield f"past, learnt from the past, {losses}", causal(trace, losses, past, ends)
        yield f"past, learnt from all, {losses}", out_of_fold(trace, losses, lambda _: past)
        both = out_of_fold(trace, losses, lambda known: around(trace, known))
        yield f"past and future, {losses}", both


def tell_how_little(past):
    """Prints how many jobs have a similar one that ended before their arrival."""
    for name in ("type", "type+pr", "type+commit"):
        part = 100 * past[f"{name} 0"].notna().mean()
        print(f"when it arrives, {part:.0f} % know one that has ended, alike in {name}")


def jitters(n_jobs):
    for seed in range(REPLAYS):
        yield numpy.exp(numpy.random.default_rng(seed).normal(0, JITTER, n_jobs))


# Replays


def read(path):
    trace = pandas.read_csv(path, dtype={"locality": str})
    trace.attrs["columns"] = list(trace.columns)
    number = trace.id.str.extract(r"PR-(\d+)#(\d+)").astype(int)
    trace["pr"], trace["nth"] = number[0], number[1]
    trace["build"] = trace.tenant + " " + trace.id
    trace["stages"] = trace.groupby("build").type.transform(lambda types: "|".join(sorted(types)))
    # The time of arrival in the replay.
    span = trace.duration_s.sum() / (SLOTS * LOAD)
    trace["at"] = trace.arrival_s * span / trace.arrival_s.max()
    return trace


def simulate(maitre, path, *options):
    fleet = ["--fleet", str(SLOTS), "--load", str(LOAD), "--json"]
    command = [maitre, "simulate", path, *fleet, *options]
    said = subprocess.run(command, check=True, capture_output=True)
    return json.loads(said.stdout)["runs"][0]


def mean_wait(maitre, trace, lengths, policy="balanced:user"):
    copy = trace[trace.attrs["columns"]].copy()
    copy["estimate_s"] = numpy.maximum(numpy.round(lengths, 3), 0.001)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.csv")
        copy.to_csv(path, index=False)
        return simulate(maitre, path, "--policy", policy)["wait_mean_s"]


def ends_under(maitre, path, trace, policy):
    """The ends of jobs in a replay. A history can only know jobs that ended."""
    with tempfile.TemporaryDirectory() as folder:
        starts = os.path.join(folder, "starts")
        wait = simulate(maitre, path, "--policy", policy, "--starts", starts)["wait_mean_s"]
        starts = pandas.read_csv(starts, header=None, names=["id", "start_ms"], dtype=str)
    order = trace.sort_values("id", kind="stable").index
    starts = starts[starts.start_ms.str.isdigit()]
    start = pandas.Series(starts.start_ms.astype(float).to_numpy() / 1000, index=order).sort_index()
    assert abs((start - trace["at"]).mean() - wait) < 1, "starts are not those of the rows"
    return (start + trace.duration_s).to_numpy()


# The known properties of a job


def facts(trace):
    known = {name: trace[name].astype("category").cat.codes for name in WORDS}
    known |= {"pr": trace.pr, "nth": trace.nth, "arrival": trace.arrival_s}
    known |= {"hour": trace.arrival_s % 86_400 // 3_600, "day": trace.arrival_s // 86_400 % 7}
    return pandas.DataFrame(known)


def around(trace, known):
    """The nearest jobs of other builds on both sides, of those that are known."""
    arrival = trace.arrival_s.to_numpy(float)
    sides = [nearest(trace, sign * arrival, sign * arrival, known) for sign in (1, -1)]
    return pandas.concat([facts(trace), sides[0], sides[1].add_suffix(" after")], axis=1)


def before(trace, ends):
    """The latest jobs that ended before the arrival."""
    everything = numpy.ones(len(trace), bool)
    latest = nearest(trace, trace["at"].to_numpy(), ends, everything)
    return pandas.concat([facts(trace), latest], axis=1)


def nearest(trace, asked, told, known):
    """Logarithmic lengths of the last similar jobs that were known before the query."""
    lengths = numpy.log(numpy.maximum(trace.duration_s.to_numpy(), 1))
    build = trace.build.astype("category").cat.codes.to_numpy()
    found = {}
    for name, (columns, count) in ALIKE.items():
        last = numpy.full((len(trace), count), numpy.nan)
        mean, age = numpy.full((2, len(trace)), numpy.nan)
        for group in trace.groupby(columns).indices.values():
            tellers = group[known[group]]
            tellers = tellers[numpy.argsort(told[tellers], kind="stable")]
            places = numpy.searchsorted(told[tellers], asked[group], side="right")
            for job, place in zip(group, places):
                seen = tellers[max(0, place - 40) : place]
                seen = seen[build[seen] != build[job]][::-1][:20]
                if len(seen):
                    last[job, : min(count, len(seen))] = lengths[seen[:count]]
                    mean[job], age[job] = lengths[seen].mean(), asked[job] - told[seen[0]]
        found |= {f"{name} {nth}": last[:, nth] for nth in range(count)}
        found |= {f"{name} mean": mean, f"{name} age": age}
    return pandas.DataFrame(found)


def twins(trace):
    """Replaces lengths of indistinguishable builds by their means. Such builds follow each other on
    one commit within an hour, and have the same stages. No estimator can do better than the mean of
    both."""
    lengths = trace.duration_s.to_numpy(float).copy()
    rows = trace.sort_values("type", kind="stable").groupby("build").groups
    builds = trace.drop_duplicates("build").sort_values("arrival_s", kind="stable")
    n_twins = 0
    for _, group in builds.groupby(["tenant", "locality", "stages"]):
        before = None
        for build, arrival in zip(group.build, group.arrival_s):
            if before is None or arrival - before[1] > 3_600:
                before = (build, arrival)
                continue
            one, two = rows[before[0]], rows[build]
            lengths[one] = lengths[two] = (lengths[one] + lengths[two]) / 2
            n_twins, before = n_twins + len(one) + len(two), None
    print(f"{n_twins} of {len(trace)} jobs have a twin")
    return lengths


def differences(trace, noise):
    """The logarithmic differences between builds of one pull request within a day, stage by stage.
    For each job one of its type is drawn, or one of any type if there are few."""
    ordered = trace.sort_values("arrival_s", kind="stable")
    lengths = numpy.log(ordered.duration_s.clip(lower=1))
    keys = [ordered[name] for name in ("type", "tenant", "pr")]
    is_near = ordered.arrival_s.groupby(keys).diff() <= 86_400
    found = lengths.groupby(keys).diff()[is_near]
    by_type = found.groupby(ordered.type[is_near])
    known = {kind: own.to_numpy() for kind, own in by_type if len(own) >= 10}
    drawn = numpy.zeros(len(trace))
    for kind, rows in trace.groupby("type").indices.items():
        drawn[rows] = noise.choice(known.get(kind, found.to_numpy()), len(rows))
    return drawn


# Learning


def learn(losses, facts, lengths):
    loss, scale = losses.split()
    there, back = (numpy.log, numpy.exp) if scale == "log" else (lambda x: x, lambda x: x)
    learner = lightgbm.LGBMRegressor(
        objective=loss, num_leaves=31, n_estimators=200, learning_rate=0.06, min_child_samples=10,
        max_bin=127, colsample_bytree=0.7, subsample=0.8, subsample_freq=1, n_jobs=1, verbose=-1,
    )  # fmt: skip
    learner.fit(facts, there(numpy.maximum(lengths, 1)), categorical_feature=WORDS)
    return lambda asked: numpy.maximum(back(learner.predict(asked)), 1)


def out_of_fold(trace, losses, known_from):
    """Learnt from all other builds, earlier and later."""
    build = trace.build.astype("category").cat.codes.to_numpy()
    fold = numpy.random.default_rng(0).integers(0, FOLDS, build.max() + 1)[build]
    lengths, truth = numpy.zeros(len(trace)), trace.duration_s.to_numpy()
    for own in range(FOLDS):
        others = fold != own
        known = known_from(others)
        lengths[~others] = learn(losses, known[others], truth[others])(known[~others])
    return lengths


def causal(trace, losses, known, ends):
    """Learnt from jobs that ended before the block of jobs began. The first block gets the mean of
    all."""
    truth, at = trace.duration_s.to_numpy(), trace["at"].to_numpy()
    order = numpy.argsort(at, kind="stable")
    lengths = numpy.full(len(trace), truth.mean())
    for block in numpy.array_split(order, BLOCKS)[1:]:
        past = ends <= at[block].min()
        if past.sum() > 100:
            lengths[block] = learn(losses, known[past], truth[past])(known.iloc[block])
    return lengths


if __name__ == "__main__":
    main()
