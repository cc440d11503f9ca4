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


def parse(package, file):
    dist = importlib.metadata.distribution(package)
    assert dist.version == PINNED[package], f"{package} is {dist.version}, want {PINNED[package]}"
    return ast.parse(dist.locate_file(file).read_text())


def functions(package, file, names, space):
    """Compiles the named functions and classes of a file, wherever they stand in it, without their decorators."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = {n.name: n for n in ast.walk(parse(package, file)) if isinstance(n, kinds) and n.name in names}
    for n in found.values():
        n.decorator_list = []
    module = ast.Module(body=list(found.values()), type_ignores=[])
    exec(compile(module, file, "exec", flags=__future__.annotations.compiler_flag), space)
    return types.SimpleNamespace(**{name: space[name] for name in names})


def branch(package, file, function, condition):
    """Compiles the one statement "if" of a function that has the condition; what is returned runs it on variables."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    inside, = (n for n in ast.walk(parse(package, file)) if isinstance(n, kinds) and n.name == function)
    found, = (n for n in ast.walk(inside) if isinstance(n, ast.If) and ast.unparse(n.test) == condition)
    code = compile(ast.Module(body=[found], type_ignores=[]), file, "exec")

    def run(**variables):
        exec(code, variables)
        return variables
    return run


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


def run_trl(loss_type, low=0.2, high=0.2, level="token", delta=None, beta=0.0, ratio=None, bonus=0.0, before=old,
            trained=mask):
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
            prompt_ids=ids[:, :1], prompt_mask=ids[:, :1], completion_ids=ids, completion_mask=trained,
            advantages=adv[:, 0], old_per_token_logps=before, ref_per_token_logps=reference,
            importance_sampling_ratio=ratio, num_items_in_batch=trained.sum()))
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

nanstd = functions("trl", "trl/trainer/utils.py", ["nanstd"], dict(base)).nanstd
scale = branch("trl", "trl/trainer/grpo_trainer.py", "_generate_and_score_completions",
               "self.multi_objective_aggregation == 'sum_then_normalize'")
scale_rewards = torch.tensor([0.1, 0.9, 0.4, 0.4, 1.7, -2.0, 3.0, 0.5, 0.0, 1.0, 1.0, 0.0, 2.0, 2.0, 2.0, 2.0])


def scaled(how):
    """Advantages of groups of four."""
    return scale(
        self=Config(multi_objective_aggregation="sum_then_normalize", reward_weights=torch.ones(1), scale_rewards=how),
        rewards_per_func=scale_rewards[:, None], device="cpu", torch=torch, nanstd=nanstd, num_generations=4,
        unscorable_mask=torch.zeros(len(scale_rewards), dtype=torch.bool))["advantages"].tolist()


# What is trained on of a group in which two answers were cut: tokens 1 and, at the end, 2.
cut = [1, 4]
ids_of = [[1] * (int(n) - 1) + [1 if i in cut else 2] for i, n in enumerate(lengths)]
trained = branch("trl", "trl/trainer/grpo_trainer.py", "_generate_and_score_completions",
                 "self.mask_truncated_completions")(
    self=Config(mask_truncated_completions=True, eos_token_ids=[2], _tokenizer=Config(pad_token_id=0)), torch=torch,
    completion_ids_list=ids_of, device="cpu", completion_mask=mask, tool_mask=None)["completion_mask"]
cut_rewards = torch.tensor([0.3, 1.9, -0.4, 1.1, 0.8, -1.0])
cut_advantages = cut_rewards - cut_rewards.mean()
rest = len(cases)
for loss_type, high in (("dapo", 0.28), ("grpo", 0.2), ("dr_grpo", 0.2)):
    case("trl " + loss_type, run_trl(loss_type, high=high, trained=trained), cut_advantages)
truncated = dict(cut=cut, rewards=cut_rewards.tolist(), losses=cases[rest:])
del cases[rest:]

soft = functions("trl", "trl/rewards/other_rewards.py", ["_SoftOverlongPunishment"], dict(base))._SoftOverlongPunishment
hard = branch("verl", "verl/experimental/reward_loop/reward_manager/dapo.py", "run_single",
              "self.overlong_buffer_cfg is not None and self.overlong_buffer_cfg.enable")


def overlong(longest, buffer, factor, count):
    """Penalties of answers of 1 to count tokens, by verl. It samples none above the longest."""
    cfg = Config(enable=True, len=buffer, penalty_factor=factor, log=False)
    self = Config(overlong_buffer_cfg=cfg, max_resp_len=longest)
    return [float(hard(self=self, valid_response_length=n, reward=0.0)["reward"]) for n in range(1, count + 1)]


def answers(count):
    return [[1] * n for n in range(1, count + 1)]


penalties = [
    dict(name="trl", longest=20, buffer=8, penalty=1.0, values=soft(20, 8)(answers(24))),
    dict(name="trl sudden", longest=20, buffer=0, penalty=1.0, values=soft(20, 0)(answers(24))),
    dict(name="verl", longest=20, buffer=8, penalty=1.0, values=overlong(20, 8, 1.0, 20)),
    dict(name="verl half", longest=20, buffer=5, penalty=0.5, values=overlong(20, 5, 0.5, 20)),
]

kl_reward = functions("verl", "verl/trainer/ppo/ray_trainer.py", ["apply_kl_penalty"], dict(
    base, masked_mean=F.masked_mean, core_algos=functions(
        "verl", "verl/trainer/ppo/core_algos.py", ["kl_penalty", "kl_penalty_forward"], dict(base))))


class Batch(dict):
    batch_size = [B]


def kl_in_reward(kind, strength):
    """What verl adds to the rewards of tokens."""
    data = Config(batch=Batch(response_mask=mask, token_level_scores=torch.zeros(B, T), old_log_probs=old,
                              ref_log_prob=reference))
    data, _ = kl_reward.apply_kl_penalty(data, Config(value=strength, update=lambda **_: None), kind)
    return data.batch["token_level_rewards"].tolist()


kl_rewards = [dict(estimator=kind, strength=0.3, added=kl_in_reward(kind, 0.3)) for kind in ("k1", "k2", "k3")]

sft = functions("verl", "verl/workers/utils/losses.py", ["sft_loss"], dict(
    base, masked_sum=F.masked_sum, DatasetPadMode=Config(NO_PADDING="no_padding"),
    tu=Config(get_non_tensor_data=lambda data, key, default: data[key]))).sft_loss
reinforce = functions("verl", "verl/trainer/ppo/core_algos.py",
                      ["compute_policy_loss_reinforce", "compute_policy_loss_gpg"],
                      dict(base, verl_F=F, agg_loss=verl.agg_loss, ActorConfig=Config))


def run_sft(x, positive):
    return sft(None, dict(log_probs=x), dict(pad_mode="right", dp_size=1, batch_num_tokens=mask.sum(),
                                             response_mask=mask * positive))[0]


case("trl unbounded", run_trl("grpo", low=1e9, high=1e9))
case("trl unbounded sequence", run_trl("grpo", low=1e9, high=1e9, level="sequence"))
case("trl reinforce", run_trl("cispo", high=1e9, before=None))
case("verl reinforce", lambda x, adv: reinforce.compute_policy_loss_reinforce(
    old, x, adv, mask, "seq-mean-token-mean", Config(global_batch_info={}))[0])
case("verl gpg", run_verl(reinforce.compute_policy_loss_gpg, "token-mean"))
case("verl sft", lambda x, _: run_sft(x, torch.ones(B, T)))
case("verl sft positive", lambda x, adv: run_sft(x, adv > 0))

print(json.dumps(dict(
    lengths=lengths.tolist(), new=new.tolist(), old=old.tolist(), behavior=behavior.tolist(), reference=reference.tolist(),
    entropy=entropy.tolist(), losses=cases, rewards=rewards.tolist(), groups=groups.tolist(),
    advantages=advantage_cases, preferences=preferences,
    scaled=dict(rewards=scale_rewards.tolist(), advantages={how: scaled(how) for how in ("group", "batch", "none")}),
    truncated=truncated, penalties=penalties, klrewards=kl_rewards)))
