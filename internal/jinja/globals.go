package jinja

import "math"

// globals are the names that every template has.
var globals map[string]any

func init() {
	globals = map[string]any{
		"range":           newBuiltin("range", makeRange),
		"dict":            &builtin{"dict", makeDict, map[string]any{"fromkeys": newBuiltin("fromkeys", fromKeys)}},
		"namespace":       newBuiltin("namespace", makeNamespace),
		"cycler":          newBuiltin("cycler", makeCycler),
		"joiner":          newBuiltin("joiner", makeJoiner),
		"raise_exception": newBuiltin("raise_exception", raiseException),
		"strftime_now":    newBuiltin("strftime_now", strftimeNow),
		"lipsum": newBuiltin("lipsum", func(*run, arg) any {
			raise(runtimeError, "lipsum is not supported: its output is random")
			return nil
		}),
	}
}

// maxRange is the maximum length of a range in the sandbox.
const maxRange = 100000

func makeRange(r *run, a arg) any {
	args := a.bind("range", positional("start"), optionalPositional("stop", missing), optionalPositional("step", 1))
	s := span{0, r.index(args[0]), 1}
	if args[1] != missing {
		s = span{s.stop, r.index(args[1]), r.index(args[2])}
	}
	if s.step == 0 {
		raise(valueError, "range() arg 3 must not be zero")
	}
	far := func(n int) bool { return n > math.MaxInt/4 || n < -math.MaxInt/4 }
	if far(s.start) || far(s.stop) || far(s.step) || s.len() > maxRange {
		raise(overflowError, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return s
}

// makeDict is dict(mapping or pairs, name=value).
func makeDict(r *run, a arg) any {
	d := NewDict()
	if len(a.pos) > 1 {
		raise(typeError, "dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		switch v := a.pos[0].(type) {
		case *Dict:
			d = v.Clone()
		case *undefined:
			v.fail()
		default:
			for _, item := range r.items(v) {
				if !iterable(item) {
					raise(typeError, "cannot convert dictionary update sequence element to a sequence")
				}
				pair := r.unpack(item, 2)
				d.set(r, pair[0], pair[1])
			}
		}
	}
	if a.named != nil {
		for i, k := range a.named.keys {
			d.set(r, k, a.named.values[i])
		}
	}
	return d
}

func makeNamespace(r *run, a arg) any {
	d := makeDict(r, a).(*Dict)
	for _, k := range d.keys {
		checkAttribute(k)
	}
	return &namespace{d}
}

func makeCycler(_ *run, a arg) any {
	a.noNamed("cycler")
	if len(a.pos) == 0 {
		raise("RuntimeError", "at least one item has to be provided")
	}
	return &cycler{items: a.pos}
}

func makeJoiner(r *run, a arg) any {
	return &joiner{sep: r.str(a.bind("joiner", optional("sep", ", "))[0])}
}

// raiseException is raise_exception, by which templates reject conversations.
func raiseException(r *run, a arg) any {
	raise("TemplateError", "%s", r.str(a.bind("raise_exception", param1("message"))[0]))
	return nil
}

func strftimeNow(r *run, a arg) any {
	out := strftime(r.now(), textArg(a.bind("strftime_now", param1("format"))[0]))
	r.size(len(out))
	return out
}
