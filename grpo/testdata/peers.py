"""Writes peers.json: losses with their gradients, importance weights, KL, advantages and penalties, computed by the
code of TRL and verl in float64. Their functions are taken out of their source files, so that only PyTorch is needed
beside them.

    python3 -m venv --system-site-packages VENV && VENV/bin/pip install --no-deps trl==1.16.0 verl==0.9.1
    VENV/bin/python peers.py > peers.json      (made with torch 2.15.0, numpy 2.4.6, CPU)
"""
import __future__, ast, collections, importlib.metadata, json, math, types, typing
import numpy as np
import torch

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)
PINNED = {"trl": "1.16.0", "verl": "0.9.1"}


def functions(package, file, names, space):
    """Compiles the named functions of a file, wherever they stand in it, without decorators and annotations."""
    dist = importlib.metadata.distribution(package)
    assert dist.version == PINNED[package], f"{package} is {dist.version}, want {PINNED[package]}"
    tree = ast.parse(dist.locate_file(file).read_text())
    found = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in names}
    for n in found.values():
        n.decorator_list = []
    module = ast.Module(body=list(found.values()), type_ignores=[])
    exec(compile(module, file, "exec", flags=__future__.annotations.compiler_flag), space)
    return types.SimpleNamespace(**{name: space[name] for name in names})


class Config(types.SimpleNamespace):
    def get(self, name, default=None):
        return getattr(self, name, default)


class Other:
    pass


base = dict(torch=torch, np=np, math=math, defaultdict=collections.defaultdict, Optional=typing.Optional, Any=typing.Any)
F = functions("verl", "verl/utils/torch_functional.py", ["masked_sum", "masked_mean"], dict(base))
verl = functions("verl", "verl/trainer/ppo/core_algos.py", [
    "agg_loss", "compute_policy_loss_vanilla", "compute_policy_loss_gspo", "compute_policy_loss_dro",
    "compute_policy_loss_cispo", "kl_penalty_forward", "compute_grpo_outcome_advantage",
    "compute_grpo_passk_outcome_advantage", "compute_rloo_outcome_advantage",
], dict(base, verl_F=F, ActorConfig=Config, AlgoConfig=Other))
correction = functions("verl", "verl/trainer/ppo/rollout_corr_helper.py",
                       ["_parse_rollout_is_threshold", "compute_rollout_correction_weights"],
                       dict(base, verl_F=F, SAFETY_BOUND=20.0, compute_is_metrics=lambda **_: {}))
trl = functions("trl", "trl/trainer/grpo_trainer.py", ["_compute_loss"],
                dict(base, nanmin=lambda x: x.min(), nanmax=lambda x: x.max()))

B, T = 6, 9
lengths = torch.tensor([9, 3, 7, 1, 5, 8])
mask = (torch.arange(T)[None, :] < lengths[:, None]).double()
old = -torch.rand(B, T) * 3 - 0.05
new = (old + torch.randn(B, T) * 0.5 + torch.randn(B, 1) * 0.2).clamp(max=-0.001)
behavior = (old + torch.randn(B, T) * 0.4).clamp(max=-0.001)
reference = (new + torch.randn(B, T) * 0.7).clamp(max=-0.001)
entropy = torch.rand(B, T) * 3
advantages = torch.randn(B)
cases = []


def case(name, loss, adv=advantages):
    """loss is a function of the new logprobs [B, T] and the advantages [B, T]."""
    x = new.clone().requires_grad_(True)
    value = loss(x, adv[:, None].expand(B, T))
    value.backward()
    cases.append(dict(name=name, advantages=adv.tolist(), value=value.item(), grad=x.grad.tolist()))


def run_trl(loss_type, low=0.2, high=0.2, level="token", delta=None, beta=0.0, ratio=None, bonus=0.0):
    def loss(x, adv):
        accelerator = Config(num_processes=1, sync_gradients=True, gather=lambda v: v,
                             gather_for_metrics=lambda v: v, reduce=lambda v, reduction: v)
        args = Config(delta=delta, use_bias_correction_kl=False, steps_per_generation=1)
        self = Config(
            top_entropy_quantile=1.0, aux_loss_enabled=False, off_policy_mask_threshold=None, args=args, beta=beta,
            importance_sampling_level=level, loss_type=loss_type, epsilon_low=low, epsilon_high=high,
            use_vllm=ratio is not None, vllm_importance_sampling_correction=ratio is not None,
            current_gradient_accumulation_steps=1, model=Config(training=True), max_completion_length=12,
            accelerator=accelerator, _entropy_bonus_enabled=bonus != 0, use_adaptive_entropy=False, entropy_coef=bonus,
            _metrics=collections.defaultdict(lambda: collections.defaultdict(list)),
            _get_per_token_logps_and_entropies=lambda *_, **__: (x, entropy, None))
        ids = torch.zeros(B, T, dtype=torch.long)
        return trl._compute_loss(self, None, dict(
            prompt_ids=ids[:, :1], prompt_mask=ids[:, :1], completion_ids=ids, completion_mask=mask,
            advantages=adv[:, 0], old_per_token_logps=old, ref_per_token_logps=reference,
            importance_sampling_ratio=ratio, num_items_in_batch=mask.sum()))
    return loss


def run_verl(f, mode, weights=None, **config):
    config = Config(**dict(dict(clip_ratio=0.2, clip_ratio_low=None, clip_ratio_high=None, global_batch_info={}), **config))
    return lambda x, adv: f(old_log_prob=old, log_prob=x, advantages=adv, response_mask=mask, loss_agg_mode=mode,
                            config=config, rollout_is_weights=weights)[0]


def weights(level, threshold):
    return correction.compute_rollout_correction_weights(old - behavior, mask, level, threshold)[0]


def kl(kind):
    return lambda x, _: verl.agg_loss(verl.kl_penalty_forward(x, reference, kind), mask, "token-mean")


case("trl grpo", run_trl("grpo"))
case("trl grpo delta", run_trl("grpo", delta=1.5))
case("trl grpo beta", run_trl("grpo", beta=0.04))
case("trl grpo entropy", run_trl("grpo", bonus=0.02))
case("trl dr_grpo", run_trl("dr_grpo"))
case("trl dapo", run_trl("dapo", high=0.28))
case("trl cispo", run_trl("cispo", high=1.5))
case("trl gspo", run_trl("grpo", 3e-4, 4e-4, level="sequence"))
case("trl gspo wide", run_trl("grpo", 0.1, 0.15, level="sequence"))
case("trl dapo truncated", run_trl("dapo", high=0.28, ratio=weights("token", 1.3)))
case("verl ppo", run_verl(verl.compute_policy_loss_vanilla, "token-mean", clip_ratio_c=1.5))
case("verl ppo sequences", run_verl(verl.compute_policy_loss_vanilla, "seq-mean-token-mean", clip_ratio_high=0.3,
                                    clip_ratio_c=3.0))
case("verl gspo", run_verl(verl.compute_policy_loss_gspo, "seq-mean-token-mean", clip_ratio_low=0.05,
                           clip_ratio_high=0.1))
case("verl dro", run_verl(verl.compute_policy_loss_dro, "token-mean", policy_loss=Config(dro_beta=0.3)))
case("verl cispo", run_verl(verl.compute_policy_loss_cispo, "token-mean", clip_ratio_low=0.3, clip_ratio_high=0.5))
case("verl truncated", run_verl(verl.compute_policy_loss_cispo, "token-mean", weights("token", 1.2), clip_ratio_low=1.0,
                                clip_ratio_high=4.0))
case("verl icepop", run_verl(verl.compute_policy_loss_vanilla, "token-mean", weights("token", "0.7_1.4"),
                             clip_ratio_c=3.0))
case("verl truncated sequence", run_verl(verl.compute_policy_loss_vanilla, "token-mean", weights("sequence", 1.5),
                                         clip_ratio_c=3.0))
for kind in ("k1", "k2", "k3"):
    case("verl " + kind, kl(kind), torch.zeros(B))

rewards = torch.tensor([0.1, 0.9, 0.4, 0.4, 1.7, -2.0, 3.0, 0.5, 0.0, 1.0, 1.0, 0.0, 0.0])
groups = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])


def advantage(f, **options):
    ones = torch.ones(len(rewards), 1)
    return f(rewards[:, None].clone(), ones, groups, **options)[0][:, 0].tolist()


advantage_cases = {
    "grpo": advantage(verl.compute_grpo_outcome_advantage),
    "no std": advantage(verl.compute_grpo_outcome_advantage, norm_adv_by_std_in_grpo=False),
    "rloo": advantage(verl.compute_rloo_outcome_advantage),
    "passk": advantage(verl.compute_grpo_passk_outcome_advantage, config=Config(norm_adv_by_std_in_grpo=False)),
    "passk std": advantage(verl.compute_grpo_passk_outcome_advantage, config=Config(norm_adv_by_std_in_grpo=True)),
}

dpo = functions("trl", "trl/trainer/dpo_trainer.py", ["_compute_loss"], dict(base, F=torch.nn.functional))
preferences = []


def run_dpo(x, rows, loss_type, beta, smoothing):
    """The loss of the sequences in rows, chosen ones first."""
    def outputs(logprobs):  # as of a model: a token before the answer, zeros where there is no label
        zero = torch.zeros(len(rows), T)
        return Config(log_probs=(logprobs * mask)[rows], entropy=zero, mean_logits=zero, is_top1=zero.bool())

    accelerator = Config(device="cpu", gather=lambda v: v, gather_for_metrics=lambda v: v)
    self = Config(
        model=Config(training=True), accelerator=accelerator, aux_loss_enabled=False, ld_alpha=None, beta=beta,
        precompute_ref_logps=True, f_divergence_type="reverse_kl", loss_types=[loss_type], loss_weights=[1.0],
        label_smoothing=smoothing, use_weighting=False, _total_train_tokens=0, _tp_size=1,
        _metrics=collections.defaultdict(lambda: collections.defaultdict(list)))
    chosen, rejected = (reference * mask)[rows].sum(dim=1).chunk(2)
    padded = torch.cat([torch.zeros(len(rows), 1), mask[rows]], dim=1).long()
    return dpo._compute_loss(self, lambda **_: outputs(x), dict(
        completion_mask=padded, input_ids=padded, attention_mask=padded, ref_chosen_logps=chosen,
        ref_rejected_logps=rejected), False)


def preference(name, loss_type, beta, smoothing=0.0, apart=False):
    """Sequence i is preferred to sequence i + B/2. apart computes one pair at a time, and takes the mean."""
    x = new.clone().requires_grad_(True)
    half = B // 2
    batches = [[i, i + half] for i in range(half)] if apart else [list(range(B))]
    value = sum(run_dpo(x, rows, loss_type, beta, smoothing) for rows in batches) / len(batches)
    value.backward()
    preferences.append(dict(name=name, beta=beta, smoothing=smoothing, value=value.item(), grad=x.grad.tolist()))


preference("sigmoid", "sigmoid", 0.1)
preference("sigmoid strong", "sigmoid", 1.5)
preference("sigmoid_norm", "sigmoid_norm", 5.0)
# Of "sigmoid" TRL has no smoothing. Its "aot" smooths, and sorts a batch first, which leaves one pair as it is.
preference("aot of one pair", "aot", 0.3, 0.1, apart=True)

print(json.dumps(dict(
    lengths=lengths.tolist(), new=new.tolist(), old=old.tolist(), behavior=behavior.tolist(), reference=reference.tolist(),
    entropy=entropy.tolist(), losses=cases, rewards=rewards.tolist(), groups=groups.tolist(),
    advantages=advantage_cases, preferences=preferences)))
