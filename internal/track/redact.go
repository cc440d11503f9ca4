package track

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Redacted stands for a secret.
const Redacted = "[redacted]"

// secretKeys are parts of the names of secrets, in lower case without separators.
var secretKeys = []string{
	"secret", "password", "passwd", "passphrase", "apikey", "accesskey", "privatekey", "signingkey", "authorization",
	"credential", "cookie", "bearer", "connectionstring", "dsn",
}

// secretValues are the forms of keys of known services, and of others that are secret wherever they stand.
var secretValues = regexp.MustCompile(strings.Join([]string{
	`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`, // OpenAI, Anthropic, OpenRouter, Langfuse, Stripe
	`\b(?:hf|tgp|gsk|r8|xai|nvapi|wandb_v1|glpat|pypi|npm|dop_v1)[-_][A-Za-z0-9_-]{16,}`,
	`\bgh[pousr]_[A-Za-z0-9]{20,}`,                              // GitHub
	`\bgithub_pat_[A-Za-z0-9_]{20,}`,                            //
	`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,                             // AWS
	`\bAIza[0-9A-Za-z_-]{30,}`,                                  // Google
	`\bya29\.[0-9A-Za-z_-]{20,}`,                                //
	`\bxox[abeoprs]-[0-9A-Za-z-]{10,}`,                          // Slack
	`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, // JSON Web Token
	`(?i)\b(?:bearer|basic) +[A-Za-z0-9._~+/=-]{12,}`,
	`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
}, "|"))

// userInfo is a name and a password in a URL.
var userInfo = regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s@]+@`)

// Redact returns a copy of config in JSON's types without secrets: values of keys that are named like one, and texts
// that look like one, also within a longer text. What has no JSON form is written as text.
func Redact(config map[string]any) map[string]any {
	out := make(map[string]any, len(config))
	for key, value := range config {
		out[redactText(key)] = redactNamed(key, value)
	}
	return out
}

func redactNamed(key string, value any) any {
	if isSecretKey(key) && value != nil && value != "" {
		return Redacted
	}
	return redactValue(value)
}

func redactValue(value any) any {
	switch v := value.(type) {
	case nil, bool, int, int64, uint64, float64:
		return v
	case string:
		return redactText(v)
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
		return redactText(fmt.Sprint(value))
	}
	var plain any
	if json.Unmarshal(data, &plain) != nil {
		return Redacted
	}
	return redactValue(plain)
}

// isSecretKey reports whether a key is named like a secret. A "token" is one, "tokens" and "max_tokens" are not.
func isSecretKey(key string) bool {
	lower := strings.ToLower(key)
	plain := strings.NewReplacer("_", "", "-", "", ".", "", " ", "", "/", "").Replace(lower)
	for _, part := range secretKeys {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return strings.HasSuffix(plain, "token") || plain == "auth" || plain == "key" || plain == "pat"
}

// redactText replaces what looks like a secret within text.
func redactText(text string) string {
	text = secretValues.ReplaceAllString(text, Redacted)
	return userInfo.ReplaceAllString(text, "${1}"+Redacted+"@")
}
