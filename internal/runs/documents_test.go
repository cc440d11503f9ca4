package runs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

func TestModel(t *testing.T) {
	r, err := Open(tempDir(t), "project", "model", nil)
	require.NoError(t, err)
	defer r.Close()
	var got struct{ Base string }
	ok, err := r.ReadModel(&got)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, r.WriteModel(map[string]string{"Base": "tiny"}))
	ok, err = r.ReadModel(&got)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "tiny", got.Base)
	for _, bad := range []any{func() {}, 1, nil, []int{}} {
		require.ErrorIs(t, r.WriteModel(bad), art.ErrInvalid)
	}
}

// The examples of RFC 7396, appendix A.
func TestMergeState(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"big":9007199254740993}`, `{"a":1.50}`, `{"big":9007199254740993,"a":1.50}`},
	} {
		r := openTemp(t, -1)
		require.NoError(t, r.WriteState(json.RawMessage(c[0])))
		require.NoError(t, r.MergeState(json.RawMessage(c[1])))
		var got json.RawMessage
		ok, err := r.ReadState(&got)
		require.NoError(t, err)
		require.True(t, ok)
		require.JSONEq(t, c[2], string(got))
	}
}

func TestMergeState_New(t *testing.T) {
	r := openTemp(t, -1)
	require.NoError(t, r.MergeState(map[string]int64{"n": 9007199254740993}))
	content, err := os.ReadFile(filepath.Join(r.Dir(), "state.json"))
	require.NoError(t, err)
	require.Equal(t, "{\n  \"n\": 9007199254740993\n}\n", string(content))
	require.ErrorIs(t, r.MergeState(func() {}), art.ErrInvalid)
}

func TestState_Damaged(t *testing.T) {
	r := openTemp(t, -1)
	path := filepath.Join(r.Dir(), "state.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o644))
	var state any
	_, err := r.ReadState(&state)
	require.ErrorIs(t, err, art.ErrCorrupt)
	require.ErrorContains(t, err, path)
	require.ErrorIs(t, r.MergeState(map[string]int{}), art.ErrCorrupt)
}
