"""Writes steps.json and steps.safetensors: one optimizer step of each loss through a whole model, by PyTorch's autograd in
float64. A random LoRA adapter is trained on the random model of lora/testdata/dora, on groups of trajectories with
rewards, or on pairs. Formulas are written from docs/losses.md and its papers.

    python3 steps.py        (made with peft 0.17.1, accelerate 1.10.1, transformers 4.57.1, torch 2.15.0, CPU)

Every bound of a loss is crossed by some tokens and not by others, and no token is so near to one that rounding decides.
"""
import json, os, torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

here = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(24)
base = AutoModelForCausalLM.from_pretrained(os.path.join(here, "../../../lora/testdata/dora/base"),
                                            dtype=torch.float32, attn_implementation="eager")
model = get_peft_model(base, LoraConfig(r=2, lora_alpha=3, task_type="CAUSAL_LM",
                                        target_modules=["q_proj", "v_proj", "down_proj"])).eval()
trained_params = [(n.removeprefix("base_model.model.").replace(".default", "").removesuffix(".weight"), p)
                  for n, p in model.named_parameters() if p.requires_grad]
for _, p in trained_params:
    p.data.normal_(0, 0.3)
model.double()

# Sequences of a group begin with the same prompt. The last two are histories of one trajectory, which share more.
prompts = [torch.randint(0, 40, (4,)).tolist(), torch.randint(0, 40, (6,)).tolist()]
ids, trained = [], []
for prompt, reply in ((0, 7), (0, 5), (0, 11), (0, 3), (1, 6), (1, 12), (1, 4), (1, 8)):
    ids.append(prompts[prompt] + torch.randint(0, 40, (reply,)).tolist())
    trained.append([False] * len(prompts[prompt]) + [True] * reply)
ids[7][:9], trained[7][:9] = ids[6][:9], [False] * 9
trained[2][7:9] = [False, False]  # what a tool said
trajectory, group = [0, 1, 2, 3, 4, 5, 6, 6], [0, 0, 0, 0, 1, 1, 1]  # of sequences, of trajectories
rewards = torch.tensor([1.0, 0.0, 0.75, 0.5, 0.25, 1.0, 0.5]).double()
count = torch.tensor([sum(t) for t in trained]).double()
tokens = torch.zeros(len(group)).double().index_add(0, torch.tensor(trajectory), count)  # of trajectories
N, K = count.sum(), len(group)


def forward():
    """Logprobs and entropies of the trained tokens of each sequence."""
    new, entropy = [], []
    for s, t in zip(ids, trained):
        logp = model(torch.tensor([s])).logits[0, :-1].log_softmax(-1)
        keep = torch.tensor(t[1:])
        new.append(logp.gather(1, torch.tensor(s[1:])[:, None])[keep, 0])
        entropy.append(-(logp.exp() * logp).sum(-1)[keep])
    return new, entropy


with torch.no_grad():
    at, _ = forward()
torch.manual_seed(0)  # one under which every bound is crossed
stored = lambda lists: [x.clamp(max=-0.01).float().double() for x in lists]  # logprobs are stored in float32
near = lambda spread: stored(x + spread * torch.randn_like(x) for x in at)
shifts = [0.3, 0.2, -0.3, 0.3, -0.3, -0.2, 0.1, 0.3]  # of new - old
old = [x - shift + 0.4 * torch.randn_like(x) for x, shift in zip(at, shifts)]
for i in (0, 1):
    old[i][1] = at[i][1] - 2  # much likelier than when sampled
old[3] += (at[3] - old[3]).mean() - 5e-5  # within the narrow bounds of GSPO
old, behavior, reference, again = stored(old), near(0.6), near(0.3), near(0.3)


def apart(x, bound):
    assert ((x - bound).abs() > 3e-5 * bound).all(), (x, bound)


def bounded(r, lo, hi):
    """Whether r is below, within and above."""
    apart(r, lo), apart(r, hi)
    return r < lo, (r >= lo) & (r <= hi), r > hi


crossed = {}


def note(what, *cases):
    for case, mask in enumerate(cases):
        crossed.setdefault((name, what, case), []).append(bool(mask.any()))


TOKEN = lambda d: d.exp()
SEQUENCE = lambda d: d.mean().exp().expand_as(d)
AVERAGE = lambda d: (TOKEN(d) + SEQUENCE(d)) / 2
GEOMETRIC = lambda d: ((d + d.mean()) / 2).exp()


# The loss of the tokens of a sequence: of their logprobs new, old ones, and advantages.
def ppo(low=0.2, high=0.2, level=TOKEN, dual=None, tau=0.0, mask=False):
    def loss(new, old, a):
        r, a = level(new - old), a - tau * (new - old).detach()
        below, within, above = bounded(r, 1 - low, 1 + high)
        note("ppo", below & (a < 0), below & (a > 0), within, above & (a < 0), above & (a > 0))
        out = -torch.minimum(r * a, r.clamp(1 - low, 1 + high) * a)
        if dual is not None:
            apart(r, dual)
            note("dual", (r > dual) & (a < 0), (r < dual) & (a < 0))
            out = torch.where(a < 0, torch.minimum(out, -dual * a), out)
        return out * within if mask else out
    return loss


def cispo(low=1.0, high=4.0, level=TOKEN, tau=0.0, mask=False):
    def loss(new, old, a):
        r = level(new - old).detach()
        below, within, above = bounded(r, 1 - low, 1 + high)
        note("cispo", within, above, *([below] if low < 1 else []))
        out = -r.clamp(1 - low, 1 + high) * (a - tau * (new - old).detach()) * new
        return out * within if mask else out
    return loss


importance = lambda level=TOKEN: lambda new, old, a: -level(new - old) * a
reinforce = lambda new, old, a: -a * new
dro = lambda beta=0.05: lambda new, old, a: -(a * new - beta / 2 * (new - old) ** 2)
cross_entropy = lambda new, old, a: -new * (a > 0)


def advantages(std=True, leave_one=False, balance=0.0, normalize=True, weights=None, overlong=None):
    """Of sequences, with their weights."""
    r = rewards
    if overlong is not None:
        longest, buffer = overlong
        r = r - ((tokens - (longest - buffer)) / buffer).clamp(0, 1)
        assert ((tokens > longest - buffer) & (tokens < longest)).any() and (tokens > longest).any()
    A = torch.zeros(K).double()
    for g in set(group):
        own = torch.tensor([x == g for x in group])
        x, n = r[own], sum(own)
        baseline = (x.sum() - x) / (n - 1) if leave_one else x.mean()
        A[own] = (x - baseline) / (x.std(unbiased=False) + 1e-6 if std else 1)
    A = torch.where(A < 0, A * (1 - max(balance, 0)), A * (1 + min(balance, 0)))
    w = {None: N / (K * tokens), "token": torch.ones(K), "constant": (N / (K * tokens.max())).expand(K)}[weights]
    A, w = A[trajectory], w[trajectory]
    if normalize:
        A = A / ((A.abs() * w * count).sum() / N)
    return A, w


# The estimates of KL, from new - reference.
K1, K2, K3 = lambda d: d, lambda d: d ** 2 / 2, lambda d: (-d).exp() + d - 1


def correction(kind, x, lo, hi):
    """The weights of tokens whose log-ratio to what was sampled from is x."""
    r = (x.sum().expand_as(x) if "sequence" in kind else x).exp()
    below, within, above = bounded(r, lo, hi)
    note("correction", within, above, *([below] if "mask" in kind else []))
    return r * within if "mask" in kind else r.clamp(lo, hi)


def step(loss, correct=None, low=0.0, high=2.0, recomputed=False, kl=None, coef=0.1, shape=0.0, bonus=0.0, **config):
    """The loss of a batch: of a sampled one with corrections, penalties and bonus."""
    def total():
        new, entropy = forward()
        A, w = advantages(**config)
        ratios = again if recomputed else old
        k = [x - y for x, y in zip(ratios, reference)]
        mean = torch.cat(k).mean()
        out = -bonus * torch.cat(entropy).sum()
        for i, x in enumerate(new):
            each = loss(x, ratios[i], A[i] + shape * (mean - k[i]))
            if correct:
                each = each * correction(correct, (again[i] if recomputed else x.detach()) - behavior[i], low, high)
            if kl:
                each = each + coef * kl(x - reference[i])
            out = out + (w[i] * each).sum()
        return out / N
    return total


def dpo(beta, smoothing=0.0, mean=False):
    def total():
        r = [beta * (x - y).sum() / (len(x) if mean else 1) for x, y in zip(forward()[0], reference)]
        m = torch.stack([r[i] - r[i + 1] for i in range(0, len(r), 2)])
        log_sigmoid = torch.nn.functional.logsigmoid
        return -((1 - smoothing) * log_sigmoid(m) + smoothing * log_sigmoid(-m)).mean()
    return total


STEPS = {
    "cispo": step(cispo()), "cispo, mask": step(cispo(0.3, 0.3, mask=True)), "cispo, tau": step(cispo(tau=0.2)),
    "cispo, average": step(cispo(0.3, 0.3, AVERAGE)),
    "ppo": step(ppo()), "ppo, upper bound": step(ppo(0.2, 0.4)), "ppo, dual clip": step(ppo(dual=3.0)),
    "ppo, mask": step(ppo(0.3, 0.3, mask=True)), "ppo, tau": step(ppo(tau=0.2)),
    "ppo, sequence": step(ppo(0.1, 0.1, SEQUENCE)), "ppo, average": step(ppo(level=AVERAGE)),
    "ppo, geometric mean": step(ppo(level=GEOMETRIC)),
    "grpo": step(ppo()), "dr_grpo": step(ppo(), std=False, normalize=False, weights="constant"),
    "dapo": step(ppo(high=0.28), weights="token"), "gspo": step(ppo(3e-4, 4e-4, SEQUENCE)),
    "importance_sampling": step(importance()), "importance_sampling, sequence": step(importance(SEQUENCE)),
    "reinforce": step(reinforce), "dro": step(dro()), "dro, beta": step(dro(0.4)),
    "cross_entropy": step(cross_entropy),
    "truncated": step(ppo(), "truncate"), "truncated, sequence": step(ppo(), "truncate sequence"),
    "truncated, recomputed": step(ppo(), "truncate", recomputed=True),
    "masked": step(reinforce, "mask", 0.5, 2.5), "masked, sequence": step(reinforce, "mask sequence", 0.3, 3.0),
    "kl k1": step(ppo(), kl=K1), "kl k2": step(ppo(), kl=K2), "kl k3": step(ppo(), kl=K3),
    "kl in the advantage": step(ppo(), shape=0.5), "entropy bonus": step(ppo(), bonus=0.05),
    "all terms": step(ppo(0.2, 0.4, GEOMETRIC, 2.5, 0.1), "truncate", kl=K3, bonus=0.05),
    "leave one out": step(reinforce, std=False, leave_one=True, normalize=False),
    "balance": step(reinforce, balance=0.5), "overlong": step(reinforce, overlong=(10, 4)),
    "supervised": lambda: -torch.cat(forward()[0]).mean(),
    "dpo": dpo(0.3), "dpo, smoothing": dpo(0.5, 0.1), "dpo, mean": dpo(5.0, mean=True),
}
# The layout of graphs: the transpose of PEFT's.
flat = lambda tensors: torch.cat([x.T.flatten() for x in tensors]).float().contiguous()
values, vectors = {}, {"adapter": flat([p.detach() for _, p in trained_params])}
for name, loss in STEPS.items():
    model.zero_grad()
    value = loss()
    value.backward()
    values[name], vectors[name] = value.item(), flat([p.grad for _, p in trained_params])
missed = [case for case, hits in crossed.items() if not any(hits)]
assert not missed, missed


def per_token(lists):
    """One number for each token, 0 where it is not trained."""
    out = []
    for t, x in zip(trained, lists):
        x = iter(x.tolist())
        out.append([next(x) if keep else 0.0 for keep in t])
    return out


save_file(vectors, os.path.join(here, "steps.safetensors"))
with open(os.path.join(here, "steps.json"), "w") as file:
    json.dump(dict(names=[n for n, _ in trained_params], ids=ids, trained=trained, trajectory=trajectory, group=group,
                   rewards=rewards.tolist(), old=per_token(old), again=per_token(again), behavior=per_token(behavior),
                   reference=per_token(reference), values=values), file)
