"""Writes tied/ and untied/: two random Qwen3 models as transformers saves them, in bfloat16, and golden.json: what
transformers computes with them in float64.

    python3 golden.py        (made with transformers 4.57.1, torch 2.5.1, CPU)

golden.json holds, for each model, tokens [2, 12], the log-softmax after each of them [2, 12, V], and for each weight
the Euclidean norm of the gradient of the mean negative log-likelihood of tokens 1 to 11 of both rows.
"""
import json, os, torch
from transformers import Qwen3Config, Qwen3ForCausalLM

here = os.path.dirname(os.path.abspath(__file__))


def make(name, seed, tied, theta):
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(Qwen3Config(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=64, rope_theta=theta, tie_word_embeddings=tied))
    with torch.no_grad():
        for weight in model.parameters():  # larger than at the start of training: attention and SwiGLU must matter
            if weight.dim() == 1:
                weight.copy_(1 + 0.3 * torch.randn_like(weight))
            else:
                weight.copy_(0.3 * torch.randn_like(weight))
    model.to(torch.bfloat16).save_pretrained(os.path.join(here, name))
    os.remove(os.path.join(here, name, "generation_config.json"))
    return golden(os.path.join(here, name))


def golden(folder):
    model = Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    ids = torch.randint(0, 96, (2, 12))
    logprobs = model(ids).logits.log_softmax(-1)
    loss = -logprobs[:, :-1].gather(-1, ids[:, 1:, None]).mean()
    loss.backward()
    return dict(
        ids=ids.tolist(),
        logprobs=[[[round(x, 7) for x in at] for at in row] for row in logprobs.tolist()],
        loss=loss.item(),
        grad_norms={name: weight.grad.norm().item() for name, weight in model.named_parameters()})


models = dict(tied=make("tied", 5, True, 1e6), untied=make("untied", 6, False, 1e4))
json.dump(models, open(os.path.join(here, "golden.json"), "w"), separators=(",", ":"))
