package secret

import (
	"encoding/base64"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// harmless are the headers that say nothing secret, besides those that begin with Accept or Content.
var harmless = []string{"User-Agent", "Range", "Connection", "Cache-Control", "Traceparent", "Mcp-Protocol-Version"}

// OfHeader returns what a header says that must not be repeated: the values of all fields but some standard ones, since
// the name of a field does not tell which services read a key from it. The user's name and password of basic
// authentication are there as such too.
func OfHeader(header http.Header) (secrets []string) {
	for name, values := range header {
		if strings.HasPrefix(name, "Accept") || strings.HasPrefix(name, "Content") || slices.Contains(harmless, name) {
			continue
		}
		for _, value := range values {
			secrets = append(secrets, value)
			scheme, rest, ok := strings.Cut(value, " ") // "Bearer TOKEN"
			if !ok {
				continue
			}
			secrets = append(secrets, strings.TrimSpace(rest))
			if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
				_, password, _ := strings.Cut(string(plain), ":")
				secrets = append(secrets, string(plain), password)
			}
		}
	}
	return secrets
}

// Lengths of secrets, in bytes. Shorter ones than minLength cannot be told from other text; those below wordLength are
// hidden as whole words only.
const (
	minLength  = 4
	wordLength = 10
)

// Hide replaces secrets within text, also where characters are escaped as in JSON, in a URL or in HTML. Hide first and
// shorten then: what is left of a secret that is cut is not found.
func Hide(text string, secrets []string) string {
	// The longest go first: one may contain another.
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < minLength })
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range slices.Compact(secrets) {
		text = hideOne(text, secret)
	}
	return text
}

func hideOne(text, secret string) string {
	var out strings.Builder
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != secret[0] && text[i] != '\\' && text[i] != '%' && text[i] != '&' {
			continue
		}
		n := prefix(text[i:], secret)
		if n == 0 || len(secret) < wordLength && !isWord(text, i, i+n) {
			continue
		}
		out.WriteString(text[from:i])
		out.WriteString(Redacted)
		from = i + n
		i = from - 1
	}
	if from == 0 {
		return text
	}
	out.WriteString(text[from:])
	return out.String()
}

// isWord reports whether text[from:to] stands between characters that are neither letters nor digits.
func isWord(text string, from, to int) bool {
	return (from == 0 || !isAlphanumeric(text[from-1])) && (to == len(text) || !isAlphanumeric(text[to]))
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}

// prefix returns how many bytes of text are the secret, 0 when text does not begin with it.
func prefix(text, secret string) (n int) {
	if strings.HasPrefix(text, secret) { // which may look escaped itself
		return len(secret)
	}
	for i := range len(secret) {
		if n == len(text) {
			return 0
		}
		if c, width := unescape(text[n:]); width > 0 && c == secret[i] {
			n += width
		} else if text[n] == secret[i] {
			n++
		} else {
			return 0
		}
	}
	return n
}

// unescape reads an escaped character; width is 0 when there is none.
func unescape(text string) (c byte, width int) {
	switch {
	case len(text) >= 3 && text[0] == '%':
		return hexByte(text[1:3], 3)
	case len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && text[2:4] == "00":
		return hexByte(text[4:6], 6)
	case len(text) >= 4 && text[0] == '\\' && text[1] == 'x':
		return hexByte(text[2:4], 4)
	case len(text) >= 2 && text[0] == '\\':
		return text[1], 2
	case text[0] == '&':
		end := strings.IndexByte(text[:min(len(text), 10)], ';')
		if end < 0 {
			return 0, 0
		}
		if plain := html.UnescapeString(text[:end+1]); len(plain) == 1 {
			return plain[0], end + 1
		}
	}
	return 0, 0
}

func hexByte(digits string, width int) (byte, int) {
	n, err := strconv.ParseUint(digits, 16, 8)
	if err != nil {
		return 0, 0
	}
	return byte(n), width
}
