"""OpenAI's and Anthropic's Python clients, unchanged, talk to a server of backend/server.

    python clients.py URL KEY

The versions are in requirements.txt beside it. TestSDKs_Python of backend/server runs it, with a model that replies with
reasoning, the text "Looking." and a call of the tool "look", and then, to the result of the tool, with "A wall.".
"""

import sys

import anthropic
import openai

url, key = sys.argv[1:]
SCHEMA = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}


def check(what, got, want):
    """Fails unless got is want."""
    if got != want:
        raise SystemExit(f"{what}: got {got!r}, want {want!r}")


def chat(client):
    """Chat completions: two turns, then the stream helper, then an error."""
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": "Look"}]
    message = client.chat.completions.create(model="player", messages=messages, tools=tools).choices[0].message
    check("chat", (message.content, message.reasoning, message.tool_calls[0].function.arguments), ("Looking.", "Hm", '{"at": 1}'))
    messages += [message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": "c1", "content": "a wall"}]
    check("second turn", client.chat.completions.create(model="player", messages=messages, tools=tools).choices[0].message.content, "A wall.")
    deltas = []
    with client.chat.completions.stream(
        model="player", messages=messages[:1], tools=tools, stream_options={"include_usage": True}
    ) as stream:
        for event in stream:
            if event.type == "content.delta" and event.delta:  # the first, with the role, is empty
                deltas.append(event.delta)
        final = stream.get_final_completion()
    call = final.choices[0].message.tool_calls[0]
    check("chat stream", (deltas, call.id, call.function.name, call.function.arguments), (list("Looking."), "c1", "look", '{"at": 1}'))
    check("usage", final.usage.completion_tokens, 8)
    several = client.chat.completions.create(model="player", messages=messages[:1], n=2, logprobs=True, top_logprobs=1)
    check("two replies", [(c.index, c.message.content) for c in several.choices], [(0, "Looking."), (1, "Looking.")])
    check("top logprobs", [t.token for t in several.choices[1].logprobs.content[0].top_logprobs], ["L"])
    texts = {}
    for chunk in client.chat.completions.create(model="player", messages=messages[:1], n=2, stream=True):
        for c in chunk.choices:
            texts[c.index] = texts.get(c.index, "") + (c.delta.content or "")
    check("two streams", texts, {0: "Looking.", 1: "Looking."})
    try:
        client.chat.completions.create(model="player", messages=messages[:1], reasoning_effort="high")
        raise SystemExit("reasoning_effort is not refused")
    except openai.BadRequestError as e:
        check("refused", (e.param, e.code), ("reasoning_effort", "unsupported_parameter"))


def completions(client):
    """Completions of a text and of token ids, whole and streamed."""
    whole = client.completions.create(model="player", prompt=[76, 111], logprobs=0).choices[0]
    check("completion", (whole.text, "".join(whole.logprobs.tokens)), ("Looking.", "Looking."))
    echo = client.completions.create(model="player", prompt=["Lo", "Go"], n=2, echo=True, logprobs=1).choices
    check("echo", [c.text for c in echo], ["LoLooking."] * 2 + ["GoLooking."] * 2)
    check("echoed logprobs", (echo[2].logprobs.tokens[:3], echo[2].logprobs.token_logprobs[0]), (["G", "o", "L"], None))
    text = "".join(c.choices[0].text for c in client.completions.create(model="player", prompt="Lo", stream=True))
    check("completion stream", text, "Looking.")


def responses(client):
    """Responses: two turns, then the stream helper."""
    tools = [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": True}]
    first = client.responses.create(model="player", input="Look", tools=tools)
    check("response", (first.output_text, first.output[2].arguments), ("Looking.", '{"at": 1}'))
    turns = [{"role": "user", "content": "Look"}, *first.output]
    turns.append({"type": "function_call_output", "call_id": first.output[2].call_id, "output": "a wall"})
    check("second response", client.responses.create(model="player", input=turns, tools=tools).output_text, "A wall.")
    deltas = []
    with client.responses.stream(model="player", input="Look", tools=tools) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                deltas.append(event.delta)
        final = stream.get_final_response()
    check("response stream", (deltas, final.output_text, final.output[2].name), (list("Looking."), "Looking.", "look"))


def messages(client):
    """Anthropic's messages: two turns, the stream helper, the count of tokens, and an error."""
    request = {
        "model": "player", "max_tokens": 50, "messages": [{"role": "user", "content": "Look"}],
        "tools": [{"name": "look", "input_schema": SCHEMA}],
    }
    first = client.messages.create(**request)
    check("message", ([b.type for b in first.content], first.stop_reason), (["thinking", "text", "tool_use"], "tool_use"))
    result = {"type": "tool_result", "tool_use_id": first.content[2].id, "content": "a wall"}
    turns = [*request["messages"], {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    check("second message", client.messages.create(**{**request, "messages": turns}).content[0].text, "A wall.")
    with client.messages.stream(**request) as stream:
        deltas = list(stream.text_stream)
        final = stream.get_final_message()
    check("message stream", (deltas, final.content[2].input, final.usage.output_tokens), (list("Looking."), {"at": 1}, 8))
    counted = client.messages.count_tokens(model="player", messages=request["messages"])
    check("count", counted.input_tokens, len("user:Look\n"))
    try:
        client.messages.create(**{**request, "model": "other"})
        raise SystemExit("an unknown model is served")
    except anthropic.NotFoundError as e:
        check("error", e.body["error"]["type"], "not_found_error")


client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
chat(client)
completions(client)
responses(client)
messages(anthropic.Anthropic(base_url=url, api_key=key, max_retries=0))
print("all passed")
