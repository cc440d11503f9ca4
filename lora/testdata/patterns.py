"""Writes patterns.json: which modules PEFT's own functions choose, and the rank and alpha of each.

    pip download --no-deps peft==0.21.2 && python3 patterns.py peft-0.21.2-py3-none-any.whl      (Python 3.11)

The functions are taken from the wheel, so that torch is not needed.
"""
import ast, json, os, re, sys, zipfile

wheel = zipfile.ZipFile(sys.argv[1])


def functions(path, *names):
    tree = ast.parse(wheel.read(path))
    found = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in names}
    for n in found.values():
        n.returns, n.args.args = None, [ast.arg(a.arg) for a in n.args.args]
    return [found[n] for n in names if n in found]


class _ExcludedModule:
    def __bool__(self):
        return False


space = {"re": re, "_ExcludedModule": _ExcludedModule}
for path, names in {
    "peft/utils/other.py": ("get_pattern_key", "match_target_against_key"),
    "peft/tuners/tuners_utils.py": ("check_target_module_exists",),
}.items():
    for f in functions(path, *names):
        exec(compile(ast.unparse(ast.fix_missing_locations(ast.Module([f], []))), path, "exec"), space)


class Config:
    def __init__(self, **fields):
        self.r, self.lora_alpha, self.rank_pattern, self.alpha_pattern = 4, 8, {}, {}
        self.target_modules = ["q_proj"]
        self.target_parameters = self.exclude_modules = self.layers_to_transform = self.layers_pattern = None
        self.modules_to_save = None
        self.__dict__.update(fields)


modules = [f"model.layers.{i}.{m}" for i in (0, 1, 10) for m in (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.up_proj", "mlp.experts.3.up_proj")]
modules += ["layers.1.q_proj", "q_proj", "model.layers.1.q_proj_extra"]

all_of = [m.rsplit(".", 1)[-1] for m in modules]
cases = [
    # the first in the order of the file
    {"alpha_pattern": {"q_proj": 32, "layers.0.self_attn.q_proj": 64}},
    {"alpha_pattern": {"layers.0.self_attn.q_proj": 64, "q_proj": 32}},
    {"alpha_pattern": {"z|q_proj": 1, "q_proj": 2, "a|q_proj": 3}},
    {"rank_pattern": {"q_proj": 3, ".*q_proj": 2}, "alpha_pattern": {".*q_proj": 5, "q_proj": 7}, "use_rslora": True},
    {"rank_pattern": {"up_proj": 3, r"layers\.1\..*": 2, "model.*": 1}, "target_modules": all_of},
    # syntax of Python
    {"alpha_pattern": {r"(?!.*layers\.0).*q_proj": 64}},
    {"alpha_pattern": {r"(?<=layers\.1\.)self_attn\.q_proj": 64}},
    {"alpha_pattern": {r"(?P<d>1)(?P=d)?0?\.self_attn\.q_proj": 64}},
    {"alpha_pattern": {r"layers\.(\d)(\3|0)?\.self_attn.q_proj": 64}},
    {"alpha_pattern": {r"(?P<x>l)ayers\.(\d)(\4|0)\.self_attn.q_proj": 64}},
    {"alpha_pattern": {r"layers\.1{,1}0{,}\.self_attn.q_proj": 64}},
    {"alpha_pattern": {r"layers\.[[01]\.self_attn.[a-q-[q]]*_proj": 64}},
    {"alpha_pattern": {r"layers.[]1]0?[^]]self_attn\.q_proj\Z": 64}},
    {"alpha_pattern": {r"layers\.(?:0|1(?=0)0)\.self_attn.q_proj": 64}},
    {"alpha_pattern": {r"self_attn.q_proj|mlp": 64, "q": 1, "": 2}},
    {"alpha_pattern": {r"layers\.\d++\.self_attn.q_proj": 64}},
    {"alpha_pattern": {r"layers\.(?>1|10)\.self_attn.q_proj": 64}},
    {"alpha_pattern": {r"layers\.1(0)?\.self_attn\.(?(3)q|x)_proj": 64}},
    # which modules
    {"target_modules": r".*\.(q|k)_proj"}, {"target_modules": r"q_proj"}, {"target_modules": r"(?!.*1).*\.v_proj"},
    {"target_modules": ["q_proj"], "exclude_modules": ["layers.0.self_attn.q_proj"]},
    {"target_modules": ["q_proj"], "exclude_modules": r".*layers\.\d\..*"},
    {"target_modules": ["up_proj", "q_proj"], "layers_to_transform": [1, 3]},
    {"target_modules": ["up_proj"], "layers_to_transform": 3},
    {"target_modules": ["q_proj", "up_proj"], "layers_to_transform": [1], "layers_pattern": "layers"},
    {"target_modules": ["q_proj", "up_proj"], "layers_to_transform": [3, 0], "layers_pattern": ["experts", "layers"]},
    {"target_modules": ["q_proj", "model.layers.0.mlp.up_proj"], "layers_to_transform": [10], "layers_pattern": []},
    {"target_modules": ["q_proj"], "layers_to_transform": [], "layers_pattern": ""},
]
out = []
for fields in cases:
    c = Config(**fields)
    chosen = {}
    for m in modules:
        if space["check_target_module_exists"](c, m):
            rank = c.rank_pattern.get(space["get_pattern_key"](c.rank_pattern.keys(), m), c.r)
            alpha = c.alpha_pattern.get(space["get_pattern_key"](c.alpha_pattern.keys(), m), c.lora_alpha)
            chosen[m] = {"rank": rank, "alpha": alpha}
    out.append({"fields": fields, "chosen": chosen})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "patterns.json"), "w") as f:
    json.dump({"modules": modules, "cases": out}, f, indent=1)
    f.write("\n")
