package secret_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/secret"
)

// secrets in the forms that services use. They are made up.
var secrets = []string{
	"sk-abcdefghijklmnopqrstuvwx", "sk-ant-api03-abcdefghijklmnop", "sk-lf-01234567-89ab-cdef-0123", "hf_abcdefghijklmnopqrstuv",
	"ghp_abcdefghijklmnopqrst0123", "AKIAABCDEFGHIJKLMNOP", "AIzaSyAbcdefghijklmnopqrstuvwxyz01234",
	"xoxb-1234567890-abcdef", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "Bearer abcdefghijklmnop",
	"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
}

// A secret does not appear, alone or in a longer text, as a value, in a list, or as a key.
func TestRedact_Values(t *testing.T) {
	for _, key := range secrets {
		data, err := json.Marshal(secret.Redact(map[string]any{
			"a": key, "b": "curl -H '" + key + "' host", "c": []string{"x", key},
			"d": map[string]any{"e": struct{ Name string }{key}}, key: 1,
		}))
		require.NoError(t, err)
		quoted, _ := json.Marshal(key)
		require.NotContains(t, string(data), string(quoted[1:len(quoted)-1]))
		require.Contains(t, string(data), "curl -H ")
	}
}

// What is named like a secret does not appear, whatever it is; what only sounds like it does.
func TestRedact_Names(t *testing.T) {
	for _, name := range []string{
		"api_key", "OPENAI_API_KEY", "apiKey", "client-secret", "db.password", "hf_token", "accessToken", "Authorization", "key",
	} {
		require.Equal(t, map[string]any{name: secret.Redacted}, secret.Redact(map[string]any{name: "abc"}), name)
		inner := secret.Redact(map[string]any{name: map[string]any{"x": "abc"}})
		require.Equal(t, map[string]any{name: secret.Redacted}, inner, name)
	}
	plain := map[string]any{
		"max_tokens": 12, "tokenizer": "bpe", "keys": 3, "monkey": "a", "author": "b", "base": "Qwen/Qwen3-0.6B",
		"commit": "0123456789abcdef0123456789abcdef01234567", "empty": "", "learning_rate": 1e-4, "none": nil,
	}
	require.Equal(t, plain, secret.Redact(plain))
}

// A password in a URL does not appear; the rest of the URL does.
func TestRedact_URL(t *testing.T) {
	got := secret.Redact(map[string]any{"db": "postgres://user:pass@host/db"})
	require.Equal(t, map[string]any{"db": "postgres://[redacted]@host/db"}, got)
}
