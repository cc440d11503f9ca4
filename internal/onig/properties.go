package onig

import (
	_ "embed" // properties.txt
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// properties.txt lists general categories, scripts and two derived properties, of Unicode 16. Go's own tables are of
// another version, which changes with the toolchain; token ids must not change.
//
//go:embed properties.txt
var propertiesFile string

// span is a range of code points, both ends included.
type span struct{ lo, hi rune }

// category is a general category: a bit number in a mask of categories.
type category uint8

// categoryNames begins with the category of unassigned code points.
var categoryNames = strings.Fields(
	"Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co")

// tables is properties.txt in memory.
type tables struct {
	category [utf8.MaxRune + 1]category
	spans    map[string][]span // of scripts and derived properties
}

var unicodeTables = sync.OnceValue(func() *tables {
	t := &tables{spans: map[string][]span{}}
	bits := map[string]category{}
	for i, name := range categoryNames {
		bits[name] = category(i)
	}
	for line := range strings.Lines(propertiesFile) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		for _, field := range fields[1:] {
			s := parseSpan(field)
			if c, ok := bits[fields[0]]; ok {
				for r := s.lo; r <= s.hi; r++ {
					t.category[r] = c
				}
				continue
			}
			t.spans[fields[0]] = append(t.spans[fields[0]], s)
		}
	}
	return t
})

func parseSpan(field string) span {
	lo, hi, ranged := strings.Cut(field, "-")
	if !ranged {
		hi = lo
	}
	return span{mustHex(lo), mustHex(hi)}
}

func mustHex(s string) rune {
	n, err := strconv.ParseUint(s, 16, 21)
	if err != nil {
		panic(fmt.Sprintf("onig: properties.txt: %v", err))
	}
	return rune(n)
}

// mask returns the categories whose names begin with name.
func mask(name string) uint32 {
	var m uint32
	for i, full := range categoryNames {
		if strings.HasPrefix(full, name) {
			m |= 1 << i
		}
	}
	return m
}

// inSpans reports whether r is in sorted spans.
func inSpans(spans []span, r rune) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].hi >= r })
	return i < len(spans) && spans[i].lo <= r
}

// property returns the set of a name in \p{...}.
func property(name string) *set {
	switch name {
	case "Any":
		return &set{mask: ^uint32(0)}
	case "Letter", "Mark", "Number", "Punctuation", "Symbol", "Separator", "Other":
		return &set{mask: mask(name[:1])}
	case "White_Space":
		return spaces()
	case "C":
		return &set{mask: mask("C")}
	}
	if m := mask(name); m != 0 && len(name) <= 2 {
		return &set{mask: m}
	}
	s, ok := unicodeTables().spans[name]
	if !ok {
		fail("property %q is not supported", name)
	}
	return &set{spans: s}
}

// spaces is White_Space.
func spaces() *set {
	return &set{mask: mask("Z"), spans: []span{{'\t', '\r'}, {0x85, 0x85}}}
}

// bracketed returns a POSIX bracket class, as Oniguruma defines it for Unicode.
func bracketed(name string) *set {
	switch name {
	case "alpha":
		return property("Alphabetic")
	case "alnum":
		return &set{mask: mask("Nd"), parts: []*set{property("Alphabetic")}}
	case "digit":
		return &set{mask: mask("Nd")}
	case "punct":
		return &set{mask: mask("P") | mask("S")}
	case "space":
		return spaces()
	case "blank":
		return &set{mask: mask("Zs"), spans: []span{{'\t', '\t'}}}
	case "cntrl":
		return &set{mask: mask("Cc")}
	case "xdigit":
		return hexDigits()
	}
	fail("class [:%s:] is not supported", name)
	return nil
}

func hexDigits() *set { return &set{spans: []span{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}} }
