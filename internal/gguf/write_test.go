package gguf

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/ggml"
)

// rewritten returns what a file consists of.
func rewritten(f *File) (metadata []Pair, tensors []Source) {
	for _, key := range f.Keys() {
		value, _ := f.Value(key)
		metadata = append(metadata, Pair{key, value})
	}
	for _, name := range f.Names() {
		t, _ := f.Tensor(name)
		tensors = append(tensors, Source{t.Name, t.Type, t.Shape, func(w io.Writer) error {
			_, err := w.Write(t.Data)
			return err
		}})
	}
	return metadata, tensors
}

// TestWrite_Python: the file of the reference implementation, which has all types, is written as it is.
func TestWrite_Python(t *testing.T) {
	f := golden(t)
	metadata, tensors := rewritten(f)
	var out bytes.Buffer
	require.NoError(t, Write(&out, metadata, tensors))
	again, err := Parse(out.Bytes())
	require.NoError(t, err)
	require.Equal(t, f.Metadata(), again.Metadata())
	require.Equal(t, f.Keys(), again.Keys())
	require.Equal(t, f.Names(), again.Names())
	for _, name := range f.Names() {
		want, _ := f.Tensor(name)
		got, _ := again.Tensor(name)
		require.Equal(t, want, got)
	}
}

// TestWrite_Refused: what could not be read back is not written.
func TestWrite_Refused(t *testing.T) {
	few := func(w io.Writer) error { _, err := w.Write([]byte{1, 2}); return err }
	for want, c := range map[string]struct {
		metadata []Pair
		tensors  []Source
	}{
		"twice":               {metadata: []Pair{{"a", true}, {"a", "b"}}},
		"empty":               {metadata: []Pair{{"", true}}},
		"type int cannot":     {metadata: []Pair{{"a", 1}}},
		"type <nil> cannot":   {metadata: []Pair{{"a", nil}}},
		"[][]string cannot":   {metadata: []Pair{{"a", [][]string{}}}},
		"a power of two":      {metadata: []Pair{{"general.alignment", uint32(3)}}},
		"is there twice":      {tensors: []Source{{"x", ggml.F32, nil, few}, {"x", ggml.F32, nil, few}}},
		"of 5 dimensions":     {tensors: []Source{{"x", ggml.F32, []int{1, 1, 1, 1, 1}, few}}},
		"not whole blocks":    {tensors: []Source{{"x", ggml.Q4_K, []int{2, 32}, few}}},
		"needs 4 bytes":       {tensors: []Source{{"x", ggml.F32, []int{1}, few}}},
		io.EOF.Error():        {tensors: []Source{{"x", ggml.F32, nil, func(io.Writer) error { return io.EOF }}}},
		errFull.Error():       {metadata: []Pair{{"a", "b"}}, tensors: []Source{{"x", ggml.F32, []int{1 << 20}, nil}}},
		"unknown type 7000":   {tensors: []Source{{"x", 7000, nil, few}}},
		"list of the type []": {metadata: []Pair{{"a", []any{}}}},
	} {
		w := io.Discard
		if want == errFull.Error() {
			w = fullWriter{}
		}
		require.ErrorContains(t, Write(w, c.metadata, c.tensors), want)
	}
}

var errFull = errors.New("no space")

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errFull }

// FuzzWrite: what is read is written so that it is read the same.
func FuzzWrite(f *testing.F) {
	var out bytes.Buffer
	metadata := []Pair{{"a", []string{"b", ""}}, {"c", []bool{true}}, {"general.alignment", uint32(8)}}
	if err := Write(&out, metadata, []Source{{"x", ggml.F16, []int{3}, func(w io.Writer) error {
		_, err := w.Write(make([]byte, 6))
		return err
	}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Parse(content)
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		metadata, tensors := rewritten(file)
		if value, ok := file.Value(alignmentKey); ok && value.(uint32) > 1<<20 {
			return // too much padding
		}
		require.NoError(t, Write(&first, metadata, tensors))
		again, err := Parse(first.Bytes())
		require.NoError(t, err)
		metadata, tensors = rewritten(again)
		require.NoError(t, Write(&second, metadata, tensors))
		require.True(t, bytes.Equal(first.Bytes(), second.Bytes()))
		require.True(t, slices.Equal(file.Names(), again.Names()))
	})
}
