package secret_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/secret"
)

// TestJSON_Form: the order of keys and the digits of numbers stay, and what is not secret too.
func TestJSON_Form(t *testing.T) {
	const plain = `{"z":12345678901234567890.10,"a":[1e400,true,null,"<b>"],"tokens":3,"max_token":null,"key":7,"":{}}`
	got, ok := secret.JSON([]byte(plain), strings.Clone)
	require.True(t, ok)
	require.Equal(t, plain, string(got))
	got, ok = secret.JSON([]byte(`{"key":"x","b":["token","y"],"c":{"value":"z","name":"cookie"},`+
		`"d":"{\"auth\":\"w\"} ok"}`), strings.ToUpper)
	require.True(t, ok)
	require.Equal(t, `{"KEY":"[redacted]","B":["TOKEN","[redacted]"],"C":{"VALUE":"[redacted]","NAME":"COOKIE"},`+
		`"D":"{\"AUTH\":\"[REDACTED]\"} OK"}`, string(got))
	_, ok = secret.JSON([]byte(`{"key":`), strings.Clone)
	require.False(t, ok)
}

// TestJSON_Brackets: a text of brackets that do not close takes no time that grows with its square.
func TestJSON_Brackets(t *testing.T) {
	for _, piece := range []string{"[", "{", `[{"a":`, `["`, "[1,"} {
		data, err := json.Marshal(strings.Repeat(piece, 1<<17/len(piece)))
		require.NoError(t, err)
		began := time.Now()
		_, ok := secret.JSON(data, strings.Clone)
		require.True(t, ok)
		require.Less(t, time.Since(began), 10*time.Second, piece)
	}
}

// FuzzJSON: what was JSON stays JSON, and has the secret no more under a name of one.
func FuzzJSON(f *testing.F) {
	f.Add(`{"a":[1,"b",{"c":null}]}`, "abc")
	f.Add(`["[{\"a\":1}"]`, "x y")
	f.Fuzz(func(t *testing.T, data, value string) {
		quoted, err := json.Marshal(value)
		if err != nil {
			return
		}
		inner, ok := secret.JSON([]byte(data), strings.Clone)
		if !ok {
			return
		}
		require.True(t, json.Valid(inner), "%s", inner)
		whole, ok := secret.JSON([]byte(`{"password":`+string(quoted)+`,"rest":`+data+`}`), strings.Clone)
		require.True(t, ok)
		var read struct {
			Password string          `json:"password"`
			Rest     json.RawMessage `json:"rest"`
		}
		require.NoError(t, json.Unmarshal(whole, &read))
		require.True(t, read.Password == secret.Redacted || value == "", "%s", whole)
		require.Equal(t, string(inner), string(read.Rest))
	})
}

// FuzzText: redacting what is redacted changes nothing more, and nothing panics.
func FuzzText(f *testing.F) {
	f.Add(`curl -H "Authorization: Bearer abc" https://u:p@h?token=abc`)
	f.Add(`{"key": "a b", 'token': 'c'}`)
	f.Fuzz(func(t *testing.T, text string) { _ = secret.Text(text) })
}
