package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// compileRegex compiles a pattern that was written for Oniguruma, Hugging Face's engine. Constructs that regexp2 reads
// differently are errors.
func compileRegex(pattern string) (*regexp2.Regexp, error) {
	if err := checkDialect(pattern); err != nil {
		return nil, fmt.Errorf("regex %q: %w", pattern, err)
	}
	re, err := regexp2.Compile(pattern, regexp2.OptionMaxBacktrackingStackSize(-1))
	if err != nil {
		return nil, fmt.Errorf("regex %q: %w", pattern, err)
	}
	return re, nil
}

// escapes that mean the same to both engines; so does a backslash before punctuation.
const sharedEscapes = "dDsSpPrntfvxu"

// checkDialect reports the first construct of a pattern that is not known to mean the same to Oniguruma and regexp2.
func checkDialect(pattern string) error {
	inClass := false
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		var n int // length of the construct when it is more than one byte
		var err error
		switch {
		case rest[0] == '\\':
			n, err = checkEscape(rest)
		case inClass:
			inClass, err = checkInClass(rest)
		case rest[0] == '[':
			inClass = true
			n = len(classOpening(rest))
		case rest[0] == '(':
			err = checkGroup(rest)
		case rest[0] == '^', rest[0] == '$':
			err = fmt.Errorf("anchor %q is not supported: it matches at lines in one engine and at the text in the other", rest[0])
		case rest[0] == '{':
			err = checkRepeat(rest)
		}
		if err != nil {
			return err
		}
		i += max(n, 1) - 1
	}
	return nil
}

// checkEscape returns the length of an escape.
func checkEscape(rest string) (int, error) {
	if len(rest) < 2 {
		return 0, fmt.Errorf("it ends in a backslash")
	}
	if c := rest[1]; c < utf8.RuneSelf && isAlnum(c) && strings.IndexByte(sharedEscapes, c) < 0 {
		return 0, fmt.Errorf("escape %q is not supported: engines differ on it", rest[:2])
	}
	if len(rest) > 2 && rest[2] == '{' && strings.IndexByte("pPx", rest[1]) >= 0 {
		return strings.IndexByte(rest, '}') + 1, nil
	}
	return 2, nil
}

// classOpening returns "[", "[^", "[]" or "[^]": a bracket that comes first is a member.
func classOpening(rest string) string {
	for _, s := range []string{"[^]", "[]", "[^"} {
		if strings.HasPrefix(rest, s) {
			return s
		}
	}
	return "["
}

func checkInClass(rest string) (inClass bool, err error) {
	switch {
	case rest[0] == ']':
		return false, nil
	case rest[0] == '[', strings.HasPrefix(rest, "&&"):
		return true, fmt.Errorf("class within a class at %q is not supported: engines differ on it", clip(rest))
	}
	return true, nil
}

// checkRepeat takes {n}, {n,} and {n,m}, but not possessively.
func checkRepeat(rest string) error {
	_, after, closed := strings.Cut(rest, "}")
	if !closed || strings.HasPrefix(rest, "{,") || strings.HasPrefix(after, "+") {
		return fmt.Errorf("quantifier at %q is not supported: engines differ on it", clip(rest))
	}
	return nil
}

func checkGroup(rest string) error {
	if !strings.HasPrefix(rest, "(?") {
		return nil
	}
	for _, known := range []string{"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"} {
		if strings.HasPrefix(rest, known) {
			return nil
		}
	}
	return fmt.Errorf("group at %q is not supported: engines differ on it", clip(rest))
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// clip shortens a text for an error message.
func clip(s string) string {
	if len(s) > 12 {
		return s[:12]
	}
	return s
}
