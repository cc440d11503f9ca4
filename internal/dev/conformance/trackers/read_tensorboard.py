"""Reads a folder with TensorBoard's own server, and prints what it shows as JSON.

    python3 -m venv VENV && VENV/bin/pip install tensorboard==2.21.0 setuptools==80.9.0
    ART_TENSORBOARD_PYTHON=VENV/bin/python go test ./backend/track/tensorboard -run TestRun_TensorBoard
"""

import json
import sys
import time
import urllib.parse
import urllib.request

from tensorboard import program

server = program.TensorBoard()
server.configure(argv=["tensorboard", "--logdir", sys.argv[1], "--port", "0", "--host", "127.0.0.1", "--load_fast", "false"])
url = server.launch().rstrip("/")


def get(path, body=None, **query):
    if query:
        path += "?" + urllib.parse.urlencode(query)
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


scalars = {}
for _ in range(300):  # until the server has read the files
    scalars = get("/data/plugin/scalars/tags")
    if scalars and get("/data/plugin/text/tags") and get("/data/plugin/histograms/tags"):
        break
    time.sleep(0.1)
(run,) = scalars

experiment = get("/data/plugin/hparams/experiment", {"experimentName": "", "hparamsLimit": 0})
groups = get("/data/plugin/hparams/session_groups", {
    "experimentName": "", "allowedStatuses": ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"], "colParams": [],
    "startIndex": 0, "sliceSize": 10,
})["sessionGroups"]
print(json.dumps({
    "run": run,
    "scalars": {
        tag: [[step, value] for _, step, value in get("/data/plugin/scalars/scalars", run=run, tag=tag)]
        for tag in scalars[run]
    },
    "histograms": {  # of each step, the total count and the ends
        tag: [
            [step, sum(b[2] for b in buckets), buckets[0][0], buckets[-1][1]]
            for _, step, buckets in get("/data/plugin/histograms/histograms", run=run, tag=tag)
        ]
        for tag in get("/data/plugin/histograms/tags")[run]
    },
    "texts": {
        tag: [[text["step"], text["text"]] for text in get("/data/plugin/text/text", run=run, tag=tag)]
        for tag in get("/data/plugin/text/tags")[run]
    },
    "hparams": groups[0]["hparams"] if groups else None,
    "status": groups[0]["sessions"][0]["status"] if groups else None,
}, indent=1, sort_keys=True))
