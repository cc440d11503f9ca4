"""A LangGraph ReAct agent and OpenAI's client, unchanged, play one recorded rollout.

    python agent.py URL KEY

The versions are in requirements.txt beside it. The test TestRollouts_LangGraph of backend/server runs it and checks
what was recorded. Nothing of this project is imported: rollouts are opened and closed by plain HTTP.
"""

import json
import os
import sys
import urllib.request

os.environ["LANGSMITH_TRACING"] = "false"  # stay offline

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from openai import OpenAI

url, key = sys.argv[1:]


def call(method, path, body=None):
    """Sends JSON and returns the decoded answer."""
    request = urllib.request.Request(
        url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


@tool
def multiply(a: int, b: int) -> int:
    """Multiplies two integers."""
    return a * b


rollout = call(
    "POST",
    "/v1/rollouts",
    {"model": "player", "scenario": "6x7", "group": "products", "group_size": 1},
)
base_url = url + rollout["base"] + "/v1"

# Two questions in one conversation: the second one is answered as a stream.
messages = [("system", "Use the tool."), ("user", "What is 6 times 7?")]
for streaming in (False, True):
    llm = ChatOpenAI(model="gpt-4o", base_url=base_url, api_key=key, streaming=streaming)
    agent = create_react_agent(llm, [multiply])
    messages = agent.invoke({"messages": messages})["messages"]
    print(messages[-1].content)
    messages.append(("user", "Again, please."))

# A helper with a conversation of its own, by OpenAI's client.
client = OpenAI(base_url=base_url, api_key=key)
reply = client.chat.completions.create(
    model="gpt-4o-mini", messages=[{"role": "user", "content": "Summarize: 42."}]
)
print(reply.choices[0].message.content)

call("POST", f"/v1/rollouts/{rollout['id']}/close", {"reward": 1, "metrics": {"right": 2}})
