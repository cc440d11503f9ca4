"""Reads a run directory with DuckDB and pandas, as docs/runs.md shows, and prints what it finds as JSON.

    python3 -m venv VENV && VENV/bin/pip install duckdb==2.0.1 pandas==3.1.1 pyarrow==26.0.1
    ART_READERS_PYTHON=VENV/bin/python go test ./internal/runs -run TestReaders
"""

import json
import sys

import duckdb
import pandas

run = sys.argv[1]
files = f"{run}/trajectories/*/*.parquet"

by_step = duckdb.sql(f"""
    SELECT regexp_extract(filename, 'trajectories/([^/]+)/', 1) AS split,
           CAST(regexp_extract(filename, '([0-9]+)[.]parquet', 1) AS INTEGER) AS step,
           count(*) AS trajectories, avg(reward) AS reward,
           avg(CAST(metrics->>'$.turns' AS DOUBLE)) AS turns
    FROM read_parquet('{files}', filename = true)
    WHERE trajectory_index IS NOT NULL
    GROUP BY ALL ORDER BY ALL
""").fetchall()

tokens = duckdb.sql(f"""
    SELECT sum(len(message.sample.ids)) FROM (
        SELECT unnest(messages) AS message FROM read_parquet('{files}'))
""").fetchall()[0][0]

history = pandas.read_json(f"{run}/history.jsonl", lines=True)
frame = pandas.concat(
    [pandas.read_parquet(f"{run}/trajectories/train/{step:04d}.parquet") for step in sorted(set(history.loc[history.split == "train", "step"]))]
)

print(json.dumps({
    "by_step": by_step,
    "tokens": int(tokens),
    "history": int(len(history)),
    "reward": [float(x) for x in history.loc[history.split == "train", "train/reward"]],
    "rows": int(len(frame)),
    "first": frame.iloc[0].messages[0]["content"],
}))
