"""Writes files in the formats of OpenPipe's ART, for the tests of internal/migrate, with the library that ART uses.

    python3.12 -m venv /tmp/pa && /tmp/pa/bin/pip install pyarrow==21.0.0
    /tmp/pa/bin/python internal/migrate/testdata/make.py internal/migrate/testdata

The columns are those that openpipe-art 0.5.18 ("columns") and 0.5.23 ("json") write; ART itself is not run.
"""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
METRICS = {"turns": 2, "right": True}
METADATA = {"scenario": "s1", "seed": 3}
MESSAGE = pa.struct(
    [("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.string()), ("tool_call_id", pa.string()),
     ("trainable", pa.bool_())]
)
COLUMNS = [
    ("group_metadata", pa.string()), ("group_metrics", pa.string()), ("group_logs", pa.list_(pa.string())),
    ("reward", pa.float64()), ("metrics", pa.string()), ("metadata", pa.string()), ("tools", pa.string()),
    ("logs", pa.list_(pa.string())), ("messages", pa.list_(MESSAGE)),
]


def message(role, content, calls=None, call_id=None, trainable=False):
    return {"role": role, "content": content, "tool_calls": json.dumps(calls) if calls else None,
            "tool_call_id": call_id, "trainable": trainable}


def row(group, reward, messages, **more):
    return {"group_index": group, "group_metadata": json.dumps({"scenario": "s1"}) if group == 0 else None,
            "group_metrics": json.dumps({"cost": 0.5}) if group == 0 else None, "group_logs": None, "reward": reward,
            "metrics": None, "metadata": None, "tools": None, "logs": None, "messages": messages, **more}


LONG = [message("system", "Be brief."), message("user", "What is at x?"), message("assistant", None, [CALL], None, True),
        message("tool", "a lamp", None, "c1"), message("assistant", "A lamp – yes.", None, None, True)]
SHORT = [message("user", "Hello"), message("assistant", "Hi", None, None, True)]
ROWS = [
    row(0, 0.75, LONG, metrics=json.dumps(METRICS), metadata=json.dumps(METADATA), tools=json.dumps(TOOLS),
        logs=["first line"]),
    row(0, -1.0, SHORT), row(1, -1.0, SHORT),
]


def choice(m):
    inner = {"role": "assistant", "content": m["content"]}
    if m["tool_calls"]:
        inner["tool_calls"] = json.loads(m["tool_calls"])
    return {"finish_reason": "stop", "index": 0, "message": inner,
            "logprobs": {"content": [{"token": "token_id:7", "logprob": -0.25, "top_logprobs": []}], "refusal": None}}


def plain(m):
    if m["trainable"]:
        return choice(m)
    out = {"role": m["role"], "content": m["content"]}
    if m["tool_call_id"]:
        out["tool_call_id"] = m["tool_call_id"]
    return out


def with_json(r, index):
    trajectory = {"messages_and_choices": [plain(m) for m in r["messages"]], "reward": r["reward"],
                  "tools": json.loads(r["tools"]) if r["tools"] else None,
                  "metrics": json.loads(r["metrics"] or "{}"), "metadata": json.loads(r["metadata"] or "{}"),
                  "logs": r["logs"] or [], "additional_histories": []}
    group = {"exceptions": [], "metadata": json.loads(r["group_metadata"] or "{}"),
             "metrics": json.loads(r["group_metrics"] or "{}"), "logs": []}
    return {**r, "format_version": 2, "trajectory_index": index, "group_json": json.dumps(group),
            "trajectory_json": json.dumps(trajectory)}


def main(folder):
    old = pa.schema([("group_index", pa.int64()), *COLUMNS])
    pq.write_table(pa.Table.from_pylist(ROWS, schema=old), folder + "/columns.parquet", compression="zstd")
    new = pa.schema([("format_version", pa.int16()), ("group_index", pa.int64()), ("trajectory_index", pa.int64()),
                     ("group_json", pa.large_string()), ("trajectory_json", pa.large_string()), *COLUMNS])
    rows = [with_json(r, i) for r, i in zip(ROWS, (0, 1, 0))]
    pq.write_table(pa.Table.from_pylist(rows, schema=new), folder + "/json.parquet", compression="zstd")


main(sys.argv[1])
