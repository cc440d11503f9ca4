"""Writes properties.txt: the character properties of Oniguruma as Hugging Face's tokenizers ships it, found by matching
every code point.

    python3 -m venv /tmp/onig && /tmp/onig/bin/pip install tokenizers==0.23.3
    cd internal/onig && /tmp/onig/bin/python make_properties.py
"""

import tokenizers
from tokenizers import Regex, pre_tokenizers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TEXT = "".join(map(chr, CODES))

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
SCRIPTS = """Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul
Hebrew Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Sinhala Tamil Telugu Thai
Tibetan""".split()
OTHERS = {"Alphabetic": r"\p{Alphabetic}", "Word": r"\w"}


def members(pattern):
    left = [True] * len(CODES)
    for _, (start, end) in pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(TEXT):
        left[start:end] = [False] * (end - start)
    return [c for c, is_member in zip(CODES, left) if is_member]


def ranges(codes):
    out = []
    for c in codes:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def lines(name, pattern):
    spans = [f"{a:x}-{b:x}" if a != b else f"{a:x}" for a, b in ranges(members(pattern))]
    for i in range(0, len(spans), 10):
        yield " ".join([name, *spans[i : i + 10]])


def main():
    with open("properties.txt", "w", encoding="ascii") as f:
        f.write("# Made by make_properties.py. Code points in hexadecimal.\n")
        for name in CATEGORIES + SCRIPTS:
            for line in lines(name, rf"\p{{{name}}}"):
                f.write(line + "\n")
        for name, pattern in OTHERS.items():
            for line in lines(name, pattern):
                f.write(line + "\n")


if __name__ == "__main__":
    main()
