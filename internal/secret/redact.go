package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Redacted stands for a secret.
const Redacted = "[redacted]"

// secretKeys are parts of the names of secrets, in lower case without separators.
var secretKeys = []string{
	"secret", "password", "passwd", "passphrase", "apikey", "accesskey", "privatekey", "signingkey", "authorization",
	"credential", "cookie", "bearer", "connectionstring", "dsn", "webhook",
}

// lastWords end the names of secrets, which are text: a "token" is one, and 12 "tokens" are none.
var lastWords = []string{"key", "token", "auth", "pat", "pass", "pwd", "signature", "sig"}

// secretValues are the forms of keys of known services, and of others that are secret wherever they stand.
var secretValues = regexp.MustCompile(strings.Join([]string{
	`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`, // OpenAI, Anthropic, OpenRouter, Langfuse, Stripe
	`\b(?:hf|tml|tgp|gsk|r8|xai|nvapi|wandb_v1|glpat|pypi|npm|dop_v1|opk|ntn|lin_api|dapi)[-_][A-Za-z0-9_-]{16,}`,
	`\bgh[pousr]_[A-Za-z0-9]{20,}`,                              // GitHub
	`\bgithub_pat_[A-Za-z0-9_]{16,}`,                            //
	`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,                             // AWS
	`\bAIza[0-9A-Za-z_-]{30,}`,                                  // Google
	`\bya29\.[0-9A-Za-z_-]{20,}`,                                //
	`\bxox[abeoprs]-[0-9A-Za-z-]{10,}`,                          // Slack
	`\bxapp-[0-9A-Za-z-]{10,}`,                                  //
	`\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}`,              // SendGrid
	`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, // JSON Web Token
	`(?i)\b(?:bearer|basic) +[A-Za-z0-9._~+/=-]{8,}`,
	`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----` +
		`(?:[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s]*)`,
}, "|"))

var (
	// userInfo is a name and a password in a URL.
	userInfo = regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s@"'<>]+@`)
	// longWord may be a secret access key of AWS.
	longWord = regexp.MustCompile(`[A-Za-z0-9/+=]{40,}`)
	// assigned is a name, what stands between it and its value, and the value, or the beginning of one in quotes: a
	// variable of an environment, a part of the query of a URL, a header, JSON or YAML.
	assigned = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)(["'\\]*\s*[:=]\s*\[?\s*["'\\]*)` +
		`([^\s"'\\,;&<>{}()\[\]]+)`)
	// flag is the same of a command line.
	flag = regexp.MustCompile(`(-[A-Za-z][A-Za-z0-9_-]*)(\s+["']*)([^\s"'-][^\s"']*)`)
	// element is an element of XML, and a parameter in the formats of tool calls that look like it.
	element = regexp.MustCompile(`(<(?:parameter(?:=|\s+name="))?([A-Za-z][A-Za-z0-9_.-]*)"?>\s*)([^<]*[^<\s])`)
	// headerLine is a header, or the like, whose value is a secret up to its end.
	headerLine = regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|connection_?string|dsn)` +
		`(["'\\]*\s*[:=]\s*[\[]?["'\\]*)[^\r\n"'\\]+`)
	isURL = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://`)
)

// Redact returns a copy of config in JSON's types without secrets: values of keys that are named like one, and texts
// that look like one, also within a longer text. What has no JSON form is written as text.
func Redact(config map[string]any) map[string]any {
	out := make(map[string]any, len(config))
	for key, value := range config {
		out[Text(key)] = redactNamed(key, value)
	}
	return out
}

func redactNamed(key string, value any) any {
	plain := false
	switch value.(type) {
	case bool, int, int64, uint64, float64, json.Number:
		plain = true
	}
	if value != nil && value != "" && isNamed(key, plain) {
		return Redacted
	}
	return redactValue(value)
}

func redactValue(value any) any {
	switch v := value.(type) {
	case nil, bool, int, int64, uint64, float64:
		return v
	case string:
		return Text(v)
	case map[string]any:
		return Redact(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = redactValue(v[i])
		}
		return out
	}
	data, err := json.Marshal(value)
	if err != nil {
		return Text(fmt.Sprint(value))
	}
	var plain any
	if json.Unmarshal(data, &plain) != nil {
		return Redacted
	}
	return redactValue(plain)
}

// IsName reports whether a key, a variable or a header is named like a secret.
func IsName(key string) bool { return isNamed(key, false) }

// isNamed is IsName; the number of a key, a token and so on is none.
func isNamed(key string, number bool) bool {
	plain := strings.NewReplacer("_", "", "-", "", ".", "", " ", "", "/", "").Replace(strings.ToLower(key))
	for _, part := range secretKeys {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return !number && (strings.HasSuffix(plain, "token") || slices.Contains(lastWords, lastWord(key)))
}

// lastWord is the last word of a name such as API_KEY, api-key or apiKey, in lower case.
func lastWord(name string) string {
	runes := []rune(name)
	from := len(runes)
	for from > 0 && (unicode.IsLetter(runes[from-1]) || unicode.IsDigit(runes[from-1])) {
		from--
		if from > 0 && unicode.IsUpper(runes[from]) && unicode.IsLower(runes[from-1]) {
			break
		}
	}
	return strings.ToLower(string(runes[from:]))
}

// Text replaces what looks like a secret within text: keys by their form, passwords in URLs, and what is assigned to a
// name of a secret.
func Text(text string) string {
	text = secretValues.ReplaceAllString(text, Redacted)
	text = userInfo.ReplaceAllString(text, "${1}"+Redacted+"@")
	text = headerLine.ReplaceAllString(text, "${1}${2}"+Redacted)
	text = longWord.ReplaceAllStringFunc(text, func(word string) string {
		if len(word) == 40 && isMixed(word) { // hashes are in lower case
			return Redacted
		}
		return word
	})
	text = element.ReplaceAllStringFunc(text, func(found string) string {
		if part := element.FindStringSubmatch(found); IsName(part[2]) {
			return part[1] + Redacted
		}
		return found
	})
	return redactAssigned(redactAssigned(text, flag), assigned)
}

// isMixed reports whether text has upper and lower case and digits.
func isMixed(text string) bool {
	return strings.ContainsFunc(text, unicode.IsUpper) && strings.ContainsFunc(text, unicode.IsLower) &&
		strings.ContainsFunc(text, unicode.IsDigit)
}

// redactAssigned replaces what is assigned to a name of a secret. What is no secret may begin with the name of one.
func redactAssigned(text string, form *regexp.Regexp) string {
	var out strings.Builder
	from := 0
	for from < len(text) {
		at := form.FindStringSubmatchIndex(text[from:])
		if at == nil {
			break
		}
		start, end := from+at[6], from+at[7]
		name, between := text[from+at[2]:from+at[3]], text[from+at[4]:start]
		if quote := between[len(between)-1]; quote == '"' || quote == '\'' { // the value may have spaces
			if n := strings.IndexAny(text[start:], string(quote)+"\n"); n >= 0 {
				end = max(end, start+len(strings.TrimRight(text[start:start+n], `\`)))
			}
		}
		out.WriteString(text[from:start])
		if from = start; isSecret(name, between, text[start:end]) {
			out.WriteString(Redacted)
			from = end
		}
	}
	out.WriteString(text[from:])
	return out.String()
}

// isSecret tells a secret from prose: after a mere "key: " it has a digit.
func isSecret(name, between, value string) bool {
	number := strings.Trim(value, "0123456789.+-eE") == ""
	switch {
	case slices.Contains([]string{"true", "false", "null", "None", "redacted", Redacted}, value):
		return false
	case isNamed(name, true):
		return true
	case !isNamed(name, number), isURL.MatchString(value):
		return false
	case strings.ContainsAny(between, `="'`), strings.ContainsAny(name, "_-."):
		return true
	}
	return len(value) >= 8 && strings.ContainsAny(value, "0123456789")
}

// JSON returns a JSON value in which secrets are replaced as [Redact] does, with its keys in their order and its
// numbers as they are; also within texts in which there is JSON, such as arguments of tools. text is applied to texts
// and keys, after [Text]. ok is false for what is no JSON.
func JSON(data []byte, text func(string) string) (redacted []byte, ok bool) {
	if !json.Valid(data) {
		return nil, false
	}
	return rewriter(text).value(data), true
}

// rewriter is applied to texts.
type rewriter func(string) string

func (r rewriter) value(data []byte) []byte {
	data = bytes.TrimSpace(data)
	switch data[0] {
	case '{':
		// A pair such as {"name": "Authorization", "value": "..."} counts as a key and its value.
		members, pair := members(data)
		out := []byte{'{'}
		for i, m := range members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(out, quote(r.text(m.key))...), ':')
			if m.key == "value" && pair != "" {
				m.key = pair
			}
			out = append(out, r.named(m.key, m.value)...)
		}
		return append(out, '}')
	case '[':
		// A list such as ["Authorization", "..."] counts as a key and its value.
		var all []json.RawMessage
		_ = json.Unmarshal(data, &all)
		out := []byte{'['}
		for i, v := range all {
			if i > 0 {
				out = append(out, ',')
			}
			if key := ""; i == 1 && len(all) == 2 && json.Unmarshal(all[0], &key) == nil {
				out = append(out, r.named(key, v)...)
				continue
			}
			out = append(out, r.value(v)...)
		}
		return append(out, ']')
	case '"':
		return quote(r.text(unquote(data)))
	}
	return data
}

// text redacts a text, in which there may be JSON.
func (r rewriter) text(text string) string { return r(Text(r.embedded(text))) }

// embedded redacts the objects and lists of JSON within a text.
func (r rewriter) embedded(text string) string {
	var out strings.Builder
	budget := 16 * len(text) // bytes that may be read in vain
	for budget > 0 {
		at := strings.IndexAny(text, "{[")
		if at < 0 {
			break
		}
		out.WriteString(text[:at])
		text = text[at:]
		value, n := firstValue(text)
		if value == nil {
			out.WriteString(text[:1])
			text, budget = text[1:], budget-n
			continue
		}
		out.Write(r.value(value))
		text = text[n:]
	}
	return out.String() + text
}

// firstValue returns the value with which a text begins, and its length; nil for none, and how much of the text was
// read.
func firstValue(text string) (value json.RawMessage, n int) {
	in := json.NewDecoder(strings.NewReader(text))
	err := in.Decode(&value)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return nil, max(1, int(syntax.Offset))
	}
	if err != nil {
		return nil, len(text)
	}
	return value, int(in.InputOffset())
}

// member is a key of an object and its value.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the members of an object, and the name that it gives to its value, "" for none.
func members(data []byte) (list []member, pair string) {
	in := json.NewDecoder(bytes.NewReader(data))
	_, _ = in.Token()
	for in.More() {
		key, _ := in.Token() // data is valid
		m := member{key: key.(string)}
		_ = in.Decode(&m.value)
		if (m.key == "name" || m.key == "key") && m.value[0] == '"' {
			pair = unquote(m.value)
		}
		list = append(list, m)
	}
	return list, pair
}

// named redacts the value of a key.
func (r rewriter) named(key string, value json.RawMessage) []byte {
	first := value[0]
	number := first != '"' && first != '{' && first != '['
	if isNamed(key, number) && string(value) != "null" && string(value) != `""` {
		return quote(Redacted)
	}
	return r.value(value)
}

func unquote(data []byte) (text string) {
	_ = json.Unmarshal(data, &text)
	return text
}

func quote(text string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can be encoded
	return bytes.TrimSpace(b.Bytes())
}
