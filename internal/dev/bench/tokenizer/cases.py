"""Records how Hugging Face's tokenizers encodes fuzz strings, for each vocabulary of a folder.

    python3 -m venv /tmp/reference && /tmp/reference/bin/pip install tokenizers==0.23.3
    python3 vocabularies.py DIR
    /tmp/reference/bin/python cases.py DIR [--count 3000] [--seed 1] [NAME...]
    ART_TOKENIZER_DIR=DIR go test -run 'Reference' -v ./tokenizer

Writes DIR/NAME/cases.json: s the text, ids and sp its ids without and with special tokens, offs where they come from
(in characters), dec and decs the text of sp with and without special tokens. Half of the strings are the same for all.
"""

import argparse
import json
import pathlib
import random
import unicodedata

import tokenizers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

SPACES = " \t\n\r\v\f\x1c\x1d\x85\xa0\u1680\u180e\u2000\u2003\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
WORDS = """the The THE and agent hello Hello wORLD naïve café Straße ﬁnance ŒUVRE don't DON'T I'll I'LL we've WE'Ve it's IT'S
it'ſ you'd they'RE 'tis 's 'ſ 'ſt ’s rock'n'roll iPhone XMLHttpRequest camelCase snake_case kebab-case __init__ hasOwnProperty
antidisestablishmentarianism Donaudampfschifffahrtsgesellschaft İstanbul ıǰß ΣΊΣΥΦΟΣ ſtreet ﬀ ㎏ ½ Ⅷ ① ² 𝔘𝔫𝔦 𝓈 ｆｕｌｌ""".split()
SCRIPTS = [(0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x250, 0x2AF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
           (0x530, 0x58F), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0x980, 0x9FF), (0xE00, 0xE7F), (0xF00, 0xFFF),
           (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x2000, 0x206F),
           (0x2070, 0x218F), (0x2190, 0x23FF), (0x2460, 0x24FF), (0x2500, 0x27BF), (0x2E80, 0x2FDF), (0x3000, 0x30FF),
           (0x3130, 0x318F), (0x3200, 0x33FF), (0x4E00, 0x9FFF), (0xA960, 0xA97F), (0xAC00, 0xD7FB), (0xF900, 0xFAFF),
           (0xFB00, 0xFB4F), (0xFE00, 0xFE6F), (0xFF00, 0xFFEF), (0x10000, 0x100FF), (0x10400, 0x1044F), (0x1D400, 0x1D7FF),
           (0x1F100, 0x1F1FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0xE0000, 0xE007F), (0xE000, 0xE0FF), (0, 0x10FFFF)]
# Characters whose properties or decompositions changed since Unicode 9.
YOUNG = ([0x32FF, 0xA7F2, 0xAB69, 0x8C8, 0x9FE, 0xC3C, 0x1AC0, 0x1ACE, 0x1DF6, 0x1DFA, 0xA7CB, 0xA7DC, 0x1C89, 0x1C8A, 0x2FFC, 0x31E4, 0x16FF0,
          0x10781, 0x107B2, 0x11938, 0x11935, 0x11930, 0x1E030, 0x1FBF0, 0x1FAE9, 0x1F6DC, 0x10D40, 0x10D4A, 0x105C9, 0x1CCD6, 0x1CCF0,
          0x31350, 0x323AF, 0x2EBF0, 0x2EE5D, 0x1E5D0, 0x16D40, 0x11DE0, 0x1F8B2, 0x61C10, 0x323B0, 0xA7CE, 0x88F, 0x11B60])
EMOJI = ["👨‍👩‍👧‍👦", "👩🏽‍🚀", "🏳️‍🌈", "🇺🇸", "🇩🇪🇫", "❤️‍🔥", "1️⃣", "🧑🏿‍🤝‍🧑🏻", "😀", "🫠", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "☺", "‍", "️", "🇺", "\U0001F3FD"]
CODE = ["def f(x):\n\treturn x**2\n", "if (a&&b||!c) { return a[i]->x; }\n", "https://example.com/a?b=c&d=%20#e", "<div class=\"x\">&nbsp;</div>",
        "{\"k\": [1, 2.5e-3, null]}", "SELECT * FROM t WHERE a='b';--", "    \n        \n", "\r\n\r\n\t\t", "// --- ===", "#include <x>", "$x = `ls`;",
        "\\n\\t\\u00e9", "x_1=0xFF;", "1,234,567.89", "2024-12-31T23:59:59Z", "+1 (555) 010-9999", "a@b.co", "...?!", "——", "«»„“", "\x00\x01\x07\x1b[0m\x7f"]
MARKS = [0x300, 0x301, 0x303, 0x308, 0x323, 0x325, 0x32D, 0x345, 0x34F, 0x327, 0x31B, 0x5B0, 0x5BC, 0x64B, 0x651, 0x93C, 0x94D, 0x9BE, 0x9D7,
         0xBBE, 0xE38, 0xF71, 0xF74, 0x3099, 0x309A, 0x1161, 0x11A8, 0x20D0, 0x1D165, 0x16FF0, 0x1DF6, 0x8D3, 0x1AB0]


class Maker:
    """Makes strings; added is the added tokens of a vocabulary."""

    def __init__(self, rng, added):
        self.rng, self.added = rng, added

    def char(self):
        lo, hi = self.rng.choice(SCRIPTS)
        while True:
            c = self.rng.randint(lo, hi)
            if not 0xD800 <= c < 0xE000:
                return chr(c)

    def spaces(self):
        return "".join(self.rng.choice(SPACES if self.rng.random() < 0.3 else " \n\t\r") for _ in range(self.rng.randint(1, 6)))

    def marks(self):
        base = self.rng.choice("aAeoOuiqszדक가각ᄀかハ각ΩÅ" + chr(0x11935) + chr(0x1D157))
        return base + "".join(chr(self.rng.choice(MARKS)) for _ in range(self.rng.choice([1, 1, 2, 3, 5, 40])))

    def digits(self):
        if self.rng.random() < 0.3:
            zero = self.rng.choice([0x660, 0x966, 0xFF10, 0x1D7CE, 0x10D40, 0x2460, 0x2160, 0xB2])
            return "".join(chr(zero + self.rng.randint(0, 9)) for _ in range(self.rng.randint(1, 9)))
        return "".join(self.rng.choice("0123456789") for _ in range(self.rng.choice([1, 2, 3, 4, 7, 30])))

    def special(self):
        if not self.added:
            return "<s>"
        t = self.rng.choice(self.added)
        return self.rng.choice([t, t, t + t, " " + t + " ", "\n" + t + "\n", t[:-1], t[1:], t.upper(), t.lower(), "x" + t + "y", t.replace("|", "||")])

    def run(self):
        return self.rng.choice([" ", "a", "\n", "!", "ab", "é", "中", "=", "-", "\r\n", "▁", "Ġ", "😀", "\u0301", "0", ".", "\t", "A", "가"]) * self.rng.choice(
            [2, 3, 4, 7, 16, 17, 33, 63, 100])

    def piece(self):
        r = self.rng.random()
        if r < 0.25:
            return self.rng.choice(WORDS)
        if r < 0.40:
            return "".join(self.char() for _ in range(self.rng.randint(1, 5)))
        if r < 0.56:
            return self.spaces()
        if r < 0.62:
            return self.marks()
        if r < 0.67:
            return self.digits()
        if r < 0.73:
            return self.special()
        if r < 0.79:
            return self.rng.choice(EMOJI)
        if r < 0.85:
            return self.rng.choice(CODE)
        if r < 0.90:
            return self.run()
        if r < 0.94:
            return chr(self.rng.choice(YOUNG))
        if r < 0.97:
            return unicodedata.normalize(self.rng.choice(["NFD", "NFKD"]), self.rng.choice(WORDS + ["한국어", "ガギグ", "Việt Nam", "ἄνθρωπος"]))
        return self.rng.choice("'’ſ▁Ġ<>|[]{}_-/\\\"" + chr(0xFFFD) + chr(0x2581))

    def text(self):
        return "".join(self.piece() + (" " if self.rng.random() < 0.4 else "") for _ in range(self.rng.choice([1, 1, 2, 3, 5, 8, 13])))


def tried(f, *args):
    """f(*args); None when the reference panics, as its Strip and Precompiled do on some texts."""
    try:
        return f(*args)
    except BaseException as e:
        if type(e).__name__ != "PanicException":
            raise


def case(tok, s):
    plain, special = tok.encode(s, add_special_tokens=False), tok.encode(s)
    return {"s": s, "ids": plain.ids, "sp": special.ids, "offs": plain.offsets, "offsp": special.offsets,
            "dec": tok.decode(special.ids, skip_special_tokens=False), "decs": tok.decode(special.ids)}


def broken(tok, rng, count):
    """Random ids: they decode to broken UTF-8."""
    size = tok.get_vocab_size()
    out = []
    for _ in range(count):
        ids = [rng.randrange(min(size, rng.choice([300, size]))) for _ in range(rng.randint(1, 12))]
        out.append({"ids": ids, "dec": tok.decode(ids, skip_special_tokens=False), "decs": tok.decode(ids)})
    return out


def record(folder, count, seed):
    tok = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tok.no_truncation()
    tok.no_padding()
    added = [t.content for t in tok.get_added_tokens_decoder().values()]
    rng, same = random.Random(f"{seed} {folder.name}"), random.Random(seed)
    texts = [Maker(same, ["<s>", "<|im_end|>", "</s>"]).text() for _ in range(count // 2)]
    texts += [Maker(rng, added).text() for _ in range(count - len(texts))]
    cases = [tried(case, tok, s) for s in texts]
    out = {"cases": [c for c in cases if c], "broken": tried(broken, tok, rng, 200) or []}
    if None in cases:
        print(f"{folder.name}: the reference panics on {cases.count(None)} texts")
    with open(folder / "cases.json", "w", encoding="utf-8") as f:
        json.dump(out, f, ensure_ascii=True, separators=(",", ":"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("names", nargs="*")
    p.add_argument("--count", type=int, default=3000)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    for path in sorted(a.dir.glob("*/tokenizer.json")):
        if not a.names or path.parent.name in a.names:
            record(path.parent, a.count, a.seed)
            print(path.parent.name, flush=True)


if __name__ == "__main__":
    main()
