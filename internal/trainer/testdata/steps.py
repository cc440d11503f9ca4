"""Writes steps.json and steps.safetensors: for each loss its value on a batch, and its gradient by PyTorch's autograd in
float64, through a whole model with a DoRA adapter (lora/testdata/dora). Formulas are those of the papers, in their own words.

    python3 steps.py        (made with peft 0.17.1, accelerate 1.10.1, transformers 4.57.1, torch 2.15.0, CPU)
"""
import json, os, torch
from peft import PeftModel
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

here = os.path.dirname(os.path.abspath(__file__))
dora = os.path.join(here, "..", "..", "..", "lora", "testdata", "dora")
torch.manual_seed(24)
base = AutoModelForCausalLM.from_pretrained(os.path.join(dora, "base"), attn_implementation="eager")
model = PeftModel.from_pretrained(base, os.path.join(dora, "adapter"), is_trainable=True).double().eval()

start = torch.randint(0, 40, (3,)).tolist()  # of the first two, which share it
ids = [start + torch.randint(0, 40, (n,)).tolist() for n in (5, 7)] + [torch.randint(0, 40, (n,)).tolist() for n in (6, 9)]
trained = [[i > 2 for i in range(len(s))] for s in ids]
trained[1][5] = False  # a token that was not sampled
A, w = torch.tensor([1.2, -0.7, 0.4, -1.5]).double(), torch.tensor([0.5, 1.0, 0.75, 0.25]).double()


def forward():
    """Logprobs and entropies of the trained tokens of each sequence."""
    new, entropy = [], []
    for s, t in zip(ids, trained):
        logp = model(torch.tensor([s])).logits[0, :-1].log_softmax(-1)
        keep = torch.tensor(t[1:])
        new.append(logp.gather(1, torch.tensor(s[1:])[:, None])[keep, 0])
        entropy.append(-(logp.exp() * logp).sum(-1)[keep])
    return new, entropy


def near(lists, spread):
    """Logprobs of another policy, as float32 stores them."""
    return [(x + spread * torch.randn_like(x)).clamp(max=-0.01).float().double() for x in lists]


with torch.no_grad():
    at, _ = forward()
old, behavior, reference = near(at, 0.4), near(at, 0.4), near(at, 0.3)

TOKEN = lambda d: d.exp()
SEQUENCE = lambda d: d.mean().exp().expand_as(d)
AVERAGE = lambda d: (TOKEN(d) + SEQUENCE(d)) / 2
GEOMETRIC = lambda d: (TOKEN(d) * SEQUENCE(d)).sqrt()


def ppo(low=0.2, high=0.2, level=TOKEN, dual=None, tau=0.0):
    def loss(new, d, a, i):
        a = a - tau * d.detach()
        out = -torch.minimum(level(d) * a, level(d).clamp(1 - low, 1 + high) * a)
        return out if dual is None else torch.where(a < 0, torch.minimum(out, -dual * a), out)
    return loss


def cispo(low=1.0, high=4.0, mask=False):
    def loss(new, d, a, i):
        r = d.exp().detach()
        out = -r.clamp(1 - low, 1 + high) * a * new
        return out * ((r >= 1 - low) & (r <= 1 + high)) if mask else out
    return loss


def corrected(inner, mask=None):
    def loss(new, d, a, i):
        r = (new.detach() - behavior[i]).exp()
        r = r.clamp(0, 2) if mask is None else r * ((r >= mask[0]) & (r <= mask[1]))
        return r * inner(new, d, a, i)
    return loss


def penalized(inner, coef, estimate):
    def loss(new, d, a, i):
        return inner(new, d, a, i) + coef * estimate(new - reference[i])
    return loss


LOSSES = {
    "supervised": lambda new, d, a, i: -new,
    "cispo": cispo(), "cispo, mask": cispo(0.3, 0.3, True),
    "ppo": ppo(), "ppo, dual clip": ppo(dual=1.3), "ppo, average": ppo(level=AVERAGE), "ppo, geometric": ppo(level=GEOMETRIC),
    "ppo, tau": ppo(tau=0.3), "grpo": ppo(), "dr_grpo": ppo(), "dapo": ppo(high=0.28), "gspo": ppo(3e-4, 4e-4, SEQUENCE),
    "importance_sampling": lambda new, d, a, i: -d.exp() * a,
    "reinforce": lambda new, d, a, i: -a * new,
    "dro": lambda new, d, a, i: -(a * new - 0.05 / 2 * d ** 2),
    "cross_entropy": lambda new, d, a, i: -new * (a > 0),
    "truncated": corrected(ppo()), "masked": corrected(cispo(), (0.8, 1.25)),
    "kl k1": penalized(ppo(), 0.1, lambda x: x), "kl k2": penalized(ppo(), 0.1, lambda x: x ** 2 / 2),
    "kl k3": penalized(ppo(), 0.1, lambda x: (-x).exp() - 1 + x),
}


def total(name):
    new, entropy = forward()
    if name == "dpo":
        r = [0.5 * (x - y).sum() for x, y in zip(new, reference)]
        m = torch.stack([r[0] - r[1], r[2] - r[3]])
        sig = torch.nn.functional.logsigmoid
        return (-0.9 * sig(m) - 0.1 * sig(-m)).mean()
    if name == "entropy":
        return total("ppo") - 0.05 * sum(h.sum() for h in entropy)
    return sum((w[i] * LOSSES[name](x, x - old[i], A[i], i)).sum() for i, x in enumerate(new))


def per_token(lists):
    """One number for each token, 0 where it is not trained."""
    out = []
    for t, x in zip(trained, lists):
        x = iter(x.tolist())
        out.append([next(x) if keep else 0.0 for keep in t])
    return out


short = lambda n: n.removeprefix("base_model.model.").replace(".default", "").removesuffix(".weight")
values, grads = {}, {}
for name in [*LOSSES, "entropy", "dpo"]:
    model.zero_grad()
    loss = total(name)
    loss.backward()
    values[name] = loss.item()
    for n, p in model.named_parameters():
        if p.requires_grad:
            grad = torch.zeros_like(p) if p.grad is None else p.grad
            grads[f"{name}/{short(n)}"] = grad.float().contiguous()
save_file(grads, os.path.join(here, "steps.safetensors"))
json.dump(dict(ids=ids, trained=trained, advantages=A.tolist(), weights=w.tolist(), old=per_token(old),
               behavior=per_token(behavior), reference=per_token(reference), values=values),
          open(os.path.join(here, "steps.json"), "w"))
