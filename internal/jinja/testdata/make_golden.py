"""Writes golden.json: templates and their renderings by Jinja2 as transformers configures it.

    python -m venv VENV && VENV/bin/pip install jinja2==3.1.6 transformers==5.23.0
    VENV/bin/python make_golden.py > golden.json                  # the committed cases
    VENV/bin/python make_golden.py --random SEED COUNT > FILE     # random templates

The latter are for ART_CHAT_TEMPLATES=FILE go test -run Reference.

The variables are those of variables.json. The time is always 2026-11-21 04:05:06.
"""

import datetime
import json
import pathlib
import random
import re
import signal
import sys
import warnings

import transformers.utils.chat_template_utils as chat

warnings.simplefilter("ignore")
HERE = pathlib.Path(__file__).parent
VARIABLES = (HERE / "variables.json").read_text()


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 21, 4, 5, 6)


chat.datetime = Clock

# Written by hand, by feature. Lines that begin with "#" name the feature.
WRITTEN = (HERE / "templates.txt").read_text().split("\n=====\n")


class Grammar:
    """Random templates. Most expressions are ones that seldom fail, so that most templates render to their end."""

    strings = ["'abc'", "''", "'a,b,,c'", "'Hello World'", "\"it's\"", "'q\"q'", "'x y  z'", "'\\n'", "'\\t a'",
               "'<b>'", "'Éa'", "'ß'", "'%s'", "'{}'",
               "'日本語'", "'12'", "'-3.5'", "'a\\\\b'", "'ab' 'cd'", "'\\u00e9'", "'\\x41'", "'😀x'", "'a.b'", "'A-b c'"]
    numbers = ["0", "1", "2", "3", "-1", "10", "255", "1000000", "2.5", "0.1", "-0.0", "1e3", "1.5e-7", "1e16",
               "123456789.123", "1_000", "0x1F", "100.0",
               "99999999999999999999"]
    attributes = ["a", "b", "role", "content", "name", "age", "x", "y", "keys", "items", "upper", "count", "missing",
                  "_p", "__class__", "real"]
    filters = ["abs", "batch(2)|list", "capitalize", "center(9)", "count", "default(1)", "d('x', true)", "dictsort",
               "dictsort(by='value')", "e", "filesizeformat",
               "first", "float", "format(1)", "format(s, n)", "groupby('age')", "groupby('name', default='q')|list",
               "indent", "indent(2, true, true)", "int",
               "int(0, 16)", "items|list", "join", "join(', ')", "join(', ', attribute='name')", "last", "length",
               "list", "lower", "map('upper')|list",
               "map('nofilter')|list", "map(attribute='name')|list", "map(attribute='age', default=5)|list", "max",
               "min", "reject('none')|list",
               "select('string')|list", "select|list", "selectattr('age', 'gt', 2)|list", "rejectattr('name')|list",
               "replace('a', 'b')", "replace('', '-', 2)",
               "reverse", "reverse|list", "round", "round(1)", "round(-1)", "round(1, 'floor')", "safe",
               "slice(2)|list", "slice(2, 'f')|list", "sort",
               "sort(reverse=true)", "sort(attribute='age,name')", "string", "striptags", "sum",
               "sum(attribute='age')", "sum(start=[])", "title", "tojson",
               "tojson(indent=2)", "tojson(ensure_ascii=true)", "tojson(sort_keys=true)",
               "tojson(separators=(',', ':'))", "trim", "trim('a')",
               "truncate(5, true, '')", "truncate(9, false, '…', 0)", "unique|list", "upper", "urlencode", "wordcount",
               "xmlattr"]
    tests = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false",
             "mapping", "sequence", "iterable", "callable",
             "odd", "even", "divisibleby 3", "lower", "upper", "eq 1", "ne none", "gt 2", "lt 'b'", "in [1, 2, 'a']",
             "sameas none", "escaped", "filter", "test"]
    string_methods = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "casefold()", "strip()",
                      "strip('a ')", "lstrip()", "rstrip('d')", "split()",
                      "split(',')", "split('l', 1)", "rsplit(',', 1)", "rsplit(none, 1)", "split(maxsplit=1)",
                      "splitlines(true)", "partition(',')",
                      "rpartition('o')", "startswith(('a', 'H'))", "startswith('l', 2)", "endswith('o', 0, 5)",
                      "find('o', 5)", "rfind('o')", "index('l')",
                      "rindex('zz')", "count('l')", "count('')", "replace('l', 'L', 1)", "join(['a', 'b'])",
                      "join(mix)", "center(21, '*')", "ljust(15, '.')",
                      "zfill(15)", "expandtabs(4)", "isalpha()", "isdigit()", "isspace()", "islower()", "istitle()",
                      "isidentifier()", "isprintable()",
                      "removeprefix('He')", "removesuffix('ld')", "format(1, 2)", "format(a=1)", "format_map(d)",
                      "find('l', -3)", "split('')", "append(1)"]
    printf = ["'%s'", "'%r'", "'%5d'", "'%-5d|'", "'%05d'", "'%#x'", "'%o'", "'%e'", "'%.2f'", "'%g'", "'%+d'",
              "'% d'", "'%c'", "'%%'", "'%-5s|'", "'%.2s'",
              "'%(a)s'", "'%s %s'", "'%.0f'", "'%a'", "'%*d'", "'%q'"]
    fields = ["{}", "{:>10}", "{:*^11}", "{:05d}", "{:+d}", "{:,}", "{:#x}", "{:b}", "{:e}", "{:.2f}", "{:g}",
              "{:.3g}", "{:.1%}", "{:s}", "{:.3}", "{!r}",
              "{!s:>8}", "{:=+8}", "{:c}", "{0[0]}", "{0.a}", "{0[a]}", "{a}", "{{}}", "{:{}}", "{", "{:,.2f}",
              "{:010,}", "{:z.1f}"]
    plain = ["s", "u", "n", "x", "y", "v", "w", "d", "l", "ls", "msgs", "mix", "people", "ns is defined", "v|string",
             "v|tojson", "(x, v)", "[v, w]", "x ~ v",
             "s[1:]", "s[::-1]", "l[-1]", "d.a", "msgs[-1]['content']", "loop is defined", "x if v else y", "x or v",
             "not x", "v == w", "v in l",
             "d|items|list", "ls|sort|join", "x|default(n)", "n + 1", "s ~ n", "s.split(',')", "ws|trim",
             "msgs|map(attribute='role')|list",
             "people|groupby('age')|list|length", "v is mapping", "d|tojson(indent=2)", "n > 2 and s",
             "varargs|length", "kwargs", "caller is defined", "m1",
             "range(n)", "namespace(a=1)", "d.items()", "true", "none", "1", "'t'", "''", "ws|indent(2)", "loop"]

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = list(json.loads(VARIABLES)) + ["undef"]
        self.easy = False

    def pick(self, *choices):
        return self.r.choice(choices)

    def literal(self, depth):
        k = self.r.random()
        if k < 0.3:
            return self.r.choice(self.strings)
        if k < 0.6:
            return self.r.choice(self.numbers)
        if k < 0.7:
            return self.pick("true", "false", "none", "True", "None")
        items = [self.expression(depth - 1) for _ in range(self.r.randint(0, 3))]
        if k < 0.8:
            return "[" + ", ".join(items) + "]"
        if k < 0.9:
            return "{" + ", ".join(f"{self.pick('1', '2.0', 'true', *self.strings)}: {i}" for i in items) + "}"
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"

    def expression(self, depth):
        if self.easy:
            return self.r.choice(self.plain)
        if depth <= 0:
            return self.r.choice(self.names) if self.r.random() < 0.5 else self.literal(0)
        sub = lambda: self.expression(depth - 1)
        name = self.r.choice(self.names)
        return self.r.choice([
            lambda: name,
            lambda: self.literal(depth),
            lambda: f"({sub()} {self.pick('+', '-', '*', '/', '//', '%', '~', 'and', 'or')} {sub()})",
            lambda: f"{sub()} {self.pick('==', '!=', '<', '<=', '>', '>=', 'in', 'not in')} {sub()}",
            lambda: f"({sub()} < {sub()} <= {sub()})",
            lambda: f"({sub()} ** {self.pick('2', '3', '-1', '0')})",
            lambda: f"({sub()})|{self.r.choice(self.filters)}",
            lambda: f"{name}|{self.r.choice(self.filters)}",
            lambda: f"({sub()}) is {self.pick('', 'not ')}{self.r.choice(self.tests)}",
            lambda: f"({sub()} if {sub()} else {sub()})",
            lambda: f"({self.pick('not ', '-', '+')}{sub()})",
            lambda: f"{name}[{self.index(depth - 1)}]",
            lambda: f"{name}.{self.r.choice(self.attributes)}",
            lambda: f"{self.pick('s', 'u', 'ws', 'html', *self.strings)}.{self.r.choice(self.string_methods)}",
            lambda: f"{self.pick('l', 'mix', '(1, 2, 1)')}.{self.pick('count(1)', 'index(2)', 'copy()', 'append(1)')}",
            lambda: self.pick("d", "nested") + "."
            + self.pick("get(1)", "get(1, 5)", "keys()", "values()", "items()|list", "update(d)"),
            lambda: f"{self.r.choice(self.printf)} % {self.pick(sub(), '(' + sub() + ',)', 'd', 'n', 'f')}",
            lambda: f"'{self.r.choice(self.fields)}'.format({self.pick(sub(), name + ', 3', 'a=' + sub())})",
            lambda: self.pick("range(5)", "range(5, 0, -2)|list", "dict(a=1)", "dict(d, z=2)", "namespace(a=1).a",
                              "cycler('a', 'b').next()", "joiner()()",
                              "strftime_now('%Y-%m-%d %H:%M:%S %B %d %j %a %-d')", "dict.fromkeys('ab')"),
        ])()

    def index(self, depth):
        k = self.r.random()
        if k < 0.3:
            return str(self.r.randint(-4, 4))
        if k < 0.8:
            start, stop = self.pick("", "1", "-2", "n", "100"), self.pick("", "2", "-1", "n")
            return f"{start}:{stop}{self.pick('', ':2', ':-1', ':')}"
        return self.expression(depth)

    def tag(self, text):
        return "{%" + self.pick("", "", "-", "+") + " " + text + " " + self.pick("", "", "-", "+") + "%}"

    def output(self, text):
        return "{{" + self.pick("", "", "-", "+") + " " + text + " " + self.pick("", "", "-") + "}}"

    def body(self, depth, loop=False):
        return "".join(self.statement(depth, loop) for _ in range(self.r.randint(1, 3)))

    def statement(self, depth, loop=False):
        self.easy = self.r.random() < 0.85
        e = lambda: self.expression(2)
        inner = lambda again=loop: self.body(depth - 1, again)
        variable = self.pick("x", "y", "v", "w", "n")
        simple = [
            lambda: self.pick("a", "\n", " ", "  \n  ", "text ", "x\n", "\t", "{ } %", " {#- c -#} ", "{# c #}\n",
                              "{% raw %}{{ x }}{% endraw %}"),
            lambda: self.output(e()),
            lambda: self.tag(f"set {variable} = {e()}"),
            lambda: self.output(variable),
            lambda: self.output(self.pick("loop.index", "loop.last", "loop.length", "loop.revindex0", "loop.nextitem",
                                          "loop.previtem", "loop.cycle('a', 'b')",
                                          "loop.changed(v)", "loop") if loop else variable + " is defined"),
        ]
        if depth <= 0:
            return self.r.choice(simple)()
        return self.r.choice(simple + 2 * [
            lambda: self.tag("if " + e()) + inner()
            + (self.tag("elif " + e()) + inner() if self.r.random() < 0.3 else "") + self.tag("else") + inner()
            + self.tag("endif"),
            lambda: self.loop(depth, loop),
            lambda: self.tag("set ns = namespace(c=0)") + self.tag("set ns.c = " + e()) + self.output("ns.c"),
            lambda: self.tag(f"macro m1({self.pick('a', 'a, b=2', 'a=1, b=a', 'v=x')})") + inner(False)
            + self.output(self.pick("a", "b", "varargs", "kwargs", "v")) + self.tag("endmacro")
            + self.output(f"m1({self.pick('', '1', '1, 2', 'a=3', '*l')})"),
            lambda: self.tag("macro c1(q=1)") + "<" + self.output(self.pick("caller()", "caller(5)", "q")) + ">"
            + self.tag("endmacro") + self.tag(f"call{self.pick('', '(i=7)', '(i)')} c1()") + inner(False)
            + self.output(self.pick("i", "q", "x")) + self.tag("endcall"),
            lambda: self.tag(f"set {variable}{self.pick('', '|upper', '|trim|length')}") + inner() + self.tag("endset"),
            lambda: self.tag(f"filter {self.pick('upper', 'trim', 'replace(1, 2)', 'indent(2)', 'length')}")
            + inner() + self.tag("endfilter"),
            lambda: self.tag(f"with {self.pick('', 'x = 1', 'x = n, y = x')}") + inner() + self.tag("endwith"),
            lambda: self.tag("generation") + inner(False) + self.tag("endgeneration"),
            lambda: self.tag(f"block b{self.r.randint(0, 9)}{self.pick('', ' scoped')}") + inner(False)
            + self.tag("endblock"),
            lambda: self.tag(self.pick("set x, y = [1, 2]", "set (x, y) = 'ab'", "set ns.q = 1", "print x, 1", "break",
                                       "foo", "include 'a'", "set none = 1")),
        ])()

    def loop(self, depth, outer):
        condition = self.pick("", "", " if v", " if v != 2", " if v is not none and x", " if loop")
        recursive = " recursive" if self.r.random() < 0.1 else ""
        items = self.pick("l", "ls", "msgs", "range(3)", "d.items()", "people", "el", "s", "undef", "mix|select",
                          "l|map('string')", "'ab'")
        text = self.tag(f"for {self.pick('v', 'v', 'x', 'w')} in {items}{condition}{recursive}")
        text += self.body(depth - 1, True)
        if recursive:
            text += self.output("loop([1]) if loop.depth < 3")
        if self.r.random() < 0.3:
            text += self.tag("if " + self.pick("v == 2", "loop.index == 2", "loop.first"))
            text += self.tag(self.pick("break", "continue")) + self.tag("endif")
        if self.r.random() < 0.3:
            text += self.tag("else") + self.body(depth - 1, outer)
        return text + self.tag("endfor")

    def template(self):
        self.easy = False
        if self.r.random() < 0.5:
            return self.output(self.expression(self.r.randint(1, 3)))
        return "".join(self.statement(3) for _ in range(self.r.randint(1, 4)))


class TimeOut(BaseException):
    pass


def time_out(*_):
    raise TimeOut


def render(template):
    """Returns the text, or None and the exception. What depends on addresses or time is left out: None, None."""
    signal.signal(signal.SIGALRM, time_out)
    signal.setitimer(signal.ITIMER_REAL, 2)
    try:
        text = chat._cached_compile_jinja_template(template).render(**json.loads(VARIABLES))
        text.encode()
    except (TimeOut, RecursionError, MemoryError):
        return None, None
    except Exception as e:
        return None, f"{type(e).__name__}: {str(e)[:100]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    unstable = re.search(r" at 0x|\d[+-][\d.e-]+j\)", text, re.I) or len(text) > 20000
    return (None, None) if unstable else (text, None)


def case(name, template):
    text, error = render(template)
    if error and "complex" in error or text is None and error is None:
        return None
    return {"name": name, "template": template, **({"err": error} if error else {"want": text})}


def main():
    if sys.argv[1:2] == ["--random"]:
        seed, count, named = int(sys.argv[2]), int(sys.argv[3]), []
    else:
        seed, count, named = 1, 1000, [(f"written {i}", t) for i, t in enumerate(WRITTEN)]
    grammar = Grammar(seed)
    cases = [case(name, template) for name, template in named]
    assert None not in cases, "a written template is not stable"
    while len(cases) < len(named) + count:
        made = case(f"random {seed}/{len(cases)}", grammar.template())
        if made and len(made["template"]) < 1500:
            cases.append(made)
    print("[" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "]")


main()
