"""A LangGraph agent for the order desk, and the worker that runs it for the Go program beside it.

The agent is a graph as in LangGraph's documentation: a node that asks the model, one that calls tools, and a condition
between them. It knows a base URL and nothing of training. The worker reads a job a line on standard input, and writes an
answer a line on standard output. The versions are in requirements.txt.
"""

import concurrent.futures
import json
import os
import sys
import threading
import urllib.error
import urllib.request

os.environ["LANGSMITH_TRACING"] = "false"  # stay offline

import openai
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


def build(llm, desk):
    """The agent: desk(tool, argument) is the shop's service."""

    @tool
    def find_order(customer: str) -> str:
        """Find the order of a customer."""
        return desk("find_order", customer)

    @tool
    def order_status(order: str) -> str:
        """Status of an order."""
        return desk("order_status", order)

    @tool
    def cancel_order(order: str) -> str:
        """Cancel an order."""
        return desk("cancel_order", order)

    tools = [find_order, order_status, cancel_order]
    llm = llm.bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [llm.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


class DeskDown(Exception):
    """The desk does not answer."""


def desk_at(url, key):
    """Calls the tools over HTTP."""

    def call(name, argument):
        request = urllib.request.Request(
            f"{url}/{name}", data=argument.encode(), headers={"Authorization": f"Bearer {key}"}
        )
        try:
            with urllib.request.urlopen(request) as response:
                return response.read().decode()
        except urllib.error.HTTPError as error:
            raise DeskDown(str(error)) from error

    return call


def play(job):
    """Runs the agent on one job."""
    llm = ChatOpenAI(model="gpt-5.4-mini", base_url=job["base_url"], api_key=job["key"], max_retries=0, **job["settings"])
    agent = build(llm, desk_at(job["desk_url"], job["key"]))
    messages = [SystemMessage(job["system"]), HumanMessage(job["task"])]
    try:
        # A turn is a step of the model and one of the tools.
        state = agent.invoke({"messages": messages}, {"recursion_limit": 2 * job["max_turns"]})
        return {"id": job["id"], "answer": state["messages"][-1].content}
    except (openai.InternalServerError, openai.APIConnectionError) as error:
        return {"id": job["id"], "broken": f"{type(error).__name__}: {error}"}
    except Exception as error:  # too many turns, a tool that failed: the run has ended without an answer
        return {"id": job["id"], "error": f"{type(error).__name__}: {error}"}


def main():
    lock = threading.Lock()

    def run(line):
        answer = json.dumps(play(json.loads(line)))
        with lock:
            print(answer, flush=True)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for line in sys.stdin:
            pool.submit(run, line)


if __name__ == "__main__":
    main()
