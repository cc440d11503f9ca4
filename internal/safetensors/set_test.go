package safetensors

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// folder writes files; a slice of tensors is a safetensors file.
func folder(t *testing.T, files map[string]any) string {
	dir := t.TempDir()
	for name, content := range files {
		var b bytes.Buffer
		switch c := content.(type) {
		case string:
			b.WriteString(c)
		case []Tensor:
			require.NoError(t, Write(&b, c, nil))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644))
	}
	return dir
}

func byteTensor(name string, value byte) Tensor { return Tensor{name, "U8", []int{1}, []byte{value}} }

func TestOpenIndex_Single(t *testing.T) {
	s, err := OpenIndex(folder(t, map[string]any{singleName: []Tensor{byteTensor("b", 1), byteTensor("a", 2)}}))
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a"}, s.Names())
	a, ok := s.Tensor("a")
	require.True(t, ok)
	require.Equal(t, []byte{2}, a.Data)
	require.NoError(t, s.Close())
	_, ok = s.Tensor("a")
	require.False(t, ok)
}

func TestOpenIndex_Shards(t *testing.T) {
	s, err := OpenIndex(folder(t, map[string]any{
		indexName:       `{"metadata":{"total_size":4},"weight_map":{"a":"2.safetensors","b":"1.safetensors","c":"2.safetensors","d":"1.safetensors"}}`,
		"1.safetensors": []Tensor{byteTensor("d", 1), byteTensor("a", 9), byteTensor("b", 2)},
		"2.safetensors": []Tensor{byteTensor("c", 3), byteTensor("a", 4), byteTensor("unlisted", 9)},
	}))
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, []string{"d", "b", "c", "a"}, s.Names())
	for i, name := range s.Names() {
		tensor, ok := s.Tensor(name)
		require.True(t, ok)
		require.Equal(t, []byte{byte(i + 1)}, tensor.Data, name)
	}
	_, ok := s.Tensor("unlisted")
	require.False(t, ok)
}

func TestOpenIndex_Refused(t *testing.T) {
	one := []Tensor{byteTensor("a", 1)}
	for want, files := range map[string]map[string]any{
		"has neither model.safetensors nor":     {},
		"it has no weight_map":                  {indexName: `{}`},
		"it may be truncated":                   {indexName: `{`},
		`the index has [ where "{" is expected`: {indexName: `[]`},
		`the key "weight_map" twice`:            {indexName: `{"weight_map":{"a":"1"},"weight_map":{"a":"2"}}`},
		`weight_map has the key "a" twice`:      {indexName: `{"weight_map":{"a":"1","a":"2"}}`},
		`weight_map has 1 where a string`:       {indexName: `{"metadata":{"x":[{}]},"weight_map":{"a":1}}`},
		`"../x"; a shard is a file`:             {indexName: `{"weight_map":{"a":"../x"}}`},
		`"/etc/x"; a shard is a file`:           {indexName: `{"weight_map":{"a":"/etc/x"}}`},
		`"a/b"; a shard is a file`:              {indexName: `{"weight_map":{"a":"a/b"}}`},
		`a shard is a file of the same`:         {indexName: `{"weight_map":{"a":"..\\b"}}`},
		`""; a shard is a file`:                 {indexName: `{"weight_map":{"a":""}}`},
		"no such file":                          {indexName: `{"weight_map":{"a":"1","b":"2"}}`, "1": one},
		"lists it: download the model":          {indexName: `{"weight_map":{"a":"1","b":"2"}}`, "1": one},
		"it is truncated":                       {indexName: `{"weight_map":{"a":"1","b":"2"}}`, "1": one, "2": "{}"},
		`lists tensor "b", which 1 does`:        {indexName: `{"weight_map":{"a":"1","c":"1","b":"1"}}`, "1": one},
	} {
		dir := folder(t, files)
		_, err := OpenIndex(dir)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, dir)
	}
	_, err := OpenIndex(t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"weight_map":{"a":"1.safetensors","b":"../2"}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		shards, err := parseIndex(content)
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		for shard, tensors := range shards {
			require.NotEmpty(t, tensors)
			require.True(t, filepath.IsLocal(shard))
			require.False(t, strings.ContainsAny(shard, `/\`))
		}
	})
}
