"""Writes golden.json: losses with their gradients, and AdamW with clipping, computed by PyTorch in float64.

    python3 golden.py > golden.json      (made with torch 1.13.0, CPU)
"""
import json, math, torch

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)

def bounds(loss, eps, high):
    # ART 0.5.18, loss.py: cispo 1.0 and 4.0; ppo 0.2 and eps.
    if eps is None: eps = 1.0 if loss == "cispo" else 0.2
    if high is None: high = 4.0 if loss == "cispo" else eps
    return 1 - eps, 1 + high

def loss_case(loss, eps=None, high=None, n=40):
    old = -torch.rand(n) * 3 - 0.05
    new = (old + torch.randn(n) * 0.6).clamp(max=-0.001)
    new[:4] = old[:4]                     # on-policy
    adv = torch.randn(n)
    weight = torch.rand(n) + 0.5
    mask = (torch.arange(n) < n - 5).double()
    new.requires_grad_(True)
    lo, hi = bounds(loss, eps, high)
    ratio = torch.exp(new - old)
    if loss == "ppo":
        per = -torch.min(ratio * adv, torch.clip(ratio, lo, hi) * adv)
    else:
        per = -torch.clip(ratio.detach(), lo, hi) * adv * new
    total = (per * weight * mask).sum() / mask.sum()
    total.backward()
    f = lambda t: t.detach().tolist()
    return dict(loss=loss, epsilon=eps, epsilon_high=high, new=f(new), old=f(old), advantage=f(adv), weight=f(weight),
                mask=f(mask), denominator=mask.sum().item(), value=total.item(), grad=f(new.grad))

def adamw_case(max_norm, wd, steps=12):
    lr, betas, eps = 3e-3, (0.9, 0.99), 1e-8
    params = [torch.nn.Parameter(torch.randn(3, 4)), torch.nn.Parameter(torch.zeros(5))]
    start = [p.detach().flatten().tolist() for p in params]
    opt = torch.optim.AdamW(params, lr=lr, betas=betas, eps=eps, weight_decay=wd)
    grads, norms, after = [], [], []
    for step in range(steps):
        for p in params: p.grad = torch.randn_like(p) * 10 ** (step % 4 - 2)
        grads.append([p.grad.flatten().tolist() for p in params])
        norm = torch.nn.utils.clip_grad_norm_(params, max_norm if max_norm > 0 else math.inf)
        norms.append(norm.item())
        opt.step()
        after.append([p.detach().flatten().tolist() for p in params])
    return dict(lr=lr, beta1=betas[0], beta2=betas[1], eps=eps, weight_decay=wd, max_norm=max_norm, start=start,
                grads=grads, norms=norms, after=after)

print(json.dumps(dict(
    losses=[loss_case("ppo"), loss_case("ppo", 0.1, 0.3), loss_case("cispo"), loss_case("cispo", 0.5, 0.25)],
    adamw=[adamw_case(0.1, 0.1), adamw_case(0, 0)])))
