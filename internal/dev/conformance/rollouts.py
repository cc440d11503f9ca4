"""A Python client, unchanged, plays recorded rollouts against a server that fails at random and cuts connections.

    python rollouts.py URL KEY CLIENT ROLLOUTS TURNS

CLIENT is chat or responses (openai), messages (anthropic) or langchain (langchain-openai); the versions are in
sdks/requirements.txt and langgraph/requirements.txt beside it. It prints a line of JSON for each rollout: its id, and the
texts of the replies that the client has received. A client that is not installed ends the script with status 3.
TestRollouts_Python of internal/dev/servertest runs it, and compares that with what was recorded.
"""

import concurrent.futures
import json
import os
import random
import sys
import urllib.request

os.environ["LANGSMITH_TRACING"] = "false"  # stay offline

url, key, kind, rollouts, turns = sys.argv[1:]
TOOL = {"name": "look", "description": "Looks around.", "parameters": {"type": "object", "properties": {}}}


def call(path, body):
    """Sends JSON and returns the decoded answer."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


class Chat:
    """OpenAI's client, chat completions."""

    def __init__(self, base):
        import openai

        self.client = openai.OpenAI(base_url=base + "/v1", api_key=key, max_retries=0)
        self.messages = []

    def turn(self, text, stream):
        messages = [*self.messages, {"role": "user", "content": text}]
        request = {"model": "any", "messages": messages, "tools": [{"type": "function", "function": TOOL}]}
        if stream:
            with self.client.chat.completions.stream(**request) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = self.client.chat.completions.create(**request).choices[0].message
        said = {"role": "assistant", "content": message.content}
        if message.tool_calls:
            said["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
                for c in message.tool_calls
            ]
        results = [{"role": "tool", "tool_call_id": c.id, "content": "a wall"} for c in message.tool_calls or []]
        self.messages = [*messages, said, *results]
        return message.content


class Responses:
    """OpenAI's client, Responses."""

    def __init__(self, base):
        import openai

        self.client = openai.OpenAI(base_url=base + "/v1", api_key=key, max_retries=0)
        self.items = []

    def turn(self, text, stream):
        items = [*self.items, {"role": "user", "content": text}]
        request = {"model": "any", "input": items, "tools": [{"type": "function", "strict": False, **TOOL}]}
        if stream:
            with self.client.responses.stream(**request) as events:
                response = events.get_final_response()
        else:
            response = self.client.responses.create(**request)
        calls = [i for i in response.output if i.type == "function_call"]
        results = [{"type": "function_call_output", "call_id": c.call_id, "output": "a wall"} for c in calls]
        self.items = [*items, *response.output, *results]
        return response.output_text


class Messages:
    """Anthropic's client."""

    def __init__(self, base):
        import anthropic

        self.client = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)
        self.messages, self.results = [], []

    def turn(self, text, stream):
        messages = [*self.messages, {"role": "user", "content": [*self.results, {"type": "text", "text": text}]}]
        tool = {"name": TOOL["name"], "input_schema": TOOL["parameters"]}
        request = {"model": "any", "max_tokens": 50, "messages": messages, "tools": [tool]}
        if stream:
            with self.client.messages.stream(**request) as events:
                message = events.get_final_message()
        else:
            message = self.client.messages.create(**request)
        if message.stop_reason is None:
            raise ConnectionError("the stream was cut")
        self.messages = [*messages, {"role": "assistant", "content": message.content}]
        calls = [b for b in message.content if b.type == "tool_use"]
        self.results = [{"type": "tool_result", "tool_use_id": c.id, "content": "a wall"} for c in calls]
        return "".join(b.text for b in message.content if b.type == "text")


class Langchain:
    """LangChain's model for OpenAI's API."""

    def __init__(self, base):
        from langchain_openai import ChatOpenAI

        llm = ChatOpenAI(model="any", base_url=base + "/v1", api_key=key, max_retries=0)
        self.llm = llm.bind_tools([{"type": "function", "function": TOOL}])
        self.messages = []

    def turn(self, text, stream):
        from langchain_core.messages import ToolMessage

        messages = [*self.messages, ("user", text)]
        if stream:
            message = None
            for chunk in self.llm.stream(messages):
                message = chunk if message is None else message + chunk
            if not message.response_metadata.get("finish_reason"):
                raise ConnectionError("the stream was cut")
        else:
            message = self.llm.invoke(messages)
        self.messages = [*messages, message, *(ToolMessage("a wall", tool_call_id=c["id"]) for c in message.tool_calls)]
        return message.content


AGENTS = {"chat": Chat, "responses": Responses, "messages": Messages, "langchain": Langchain}


def play(number):
    """Plays one rollout. A turn that fails is sent again."""
    rng = random.Random(number)
    opened = call("/v1/rollouts", {"model": "player"})
    agent, received = AGENTS[kind](url + opened["base"]), []
    for turn in range(int(turns)):
        for attempt in range(200):
            try:
                received.append(agent.turn(f"turn {turn}", rng.random() < 0.5))
                break
            except ImportError:
                raise
            except Exception as error:  # of the server's failures and of cut connections: whatever the client makes of them
                last = error
        else:
            raise last
    return {"id": opened["id"], "received": received}


try:
    AGENTS[kind]("http://localhost")
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    for played in pool.map(play, range(int(rollouts))):
        print(json.dumps(played))
