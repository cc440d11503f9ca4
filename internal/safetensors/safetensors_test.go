package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// file returns a file with this header and as many bytes of data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestParse_Malformed(t *testing.T) {
	one := `"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}`
	for want, content := range map[string][]byte{
		"it has 0 bytes":                                   {},
		"it has 7 bytes":                                   make([]byte, 7),
		"the header claims 9 bytes":                        append([]byte{9, 0, 0, 0, 0, 0, 0, 0}, "{}"...),
		"more than 100000000":                              append([]byte{1, 0xe1, 0xf5, 5, 0, 0, 0, 0}, make([]byte, 99)...),
		"claims 18446744073709551615":                      bytes.Repeat([]byte{0xff}, 100),
		"not a JSON object":                                file(`[]`, 0),
		"is not a JSON object":                             file(``, 0),
		"the header is not a JSON object":                  file(` {}`, 0),
		"header is not a JSON object":                      file("{}\n", 0),
		"not UTF-8":                                        file("{\"\xff\":1}", 0),
		"not valid JSON":                                   file(`{"a":}`, 0),
		"header is not valid JSON":                         file(`{}{}`, 0),
		`the header has the key "a" twice`:                 file(`{`+one+`,`+one+`}`, 4),
		`key "__metadata__" twice`:                         file(`{"__metadata__":{},"__metadata__":{}}`, 0),
		`the header has the key "é" twice`:                 file(`{"é":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u00e9":{}}`, 0),
		`__metadata__ has the key "k" twice`:               file(`{"__metadata__":{"k":"1","k":"2"}}`, 0),
		`__metadata__ has 1 where a string is expected`:    file(`{"__metadata__":{"k":1}}`, 0),
		`__metadata__ has <nil> where "{" is expected`:     file(`{"__metadata__":null}`, 0),
		`tensor "a" has [ where "{" is expected`:           file(`{"a":[]}`, 0),
		`tensor "a" has the key "shape" twice`:             file(`{"a":{"shape":[],"shape":[]}}`, 0),
		`tensor "a" has the unknown key "stride"`:          file(`{"a":{"stride":1}}`, 0),
		`tensor "a" lacks one of`:                          file(`{"a":{"dtype":"U8","shape":[0]}}`, 0),
		`tensor "a" has 8 where a string is expected`:      file(`{"a":{"dtype":8}}`, 0),
		`tensor "a" has [ in its shape`:                    file(`{"a":{"shape":[[1]]}}`, 0),
		`tensor "a" has 1.0 in its shape`:                  file(`{"a":{"shape":[1.0]}}`, 0),
		`tensor "a" has 1e3 in its shape`:                  file(`{"a":{"shape":[1e3]}}`, 0),
		`tensor "a" has -1 in its shape`:                   file(`{"a":{"shape":[-1]}}`, 0),
		`has 99999999999999999999 in its shape`:            file(`{"a":{"shape":[99999999999999999999]}}`, 0),
		`a dimension of 18446744073709551615`:              file(`{"a":{"shape":[18446744073709551615]}}`, 0),
		`more than 64 numbers in its shape`:                file(`{"a":{"shape":[0`+strings.Repeat(",0", 64)+`]}}`, 0),
		`tensor "a" has 1 data_offsets`:                    file(`{"a":{"data_offsets":[1]}}`, 0),
		`more than 2 numbers in its data_offsets`:          file(`{"a":{"data_offsets":[0,0,0]}}`, 0),
		`tensor "a": unknown dtype "U9"`:                   file(`{"a":{"dtype":"U9","shape":[4],"data_offsets":[0,4]}}`, 4),
		`tensor "b": unknown dtype "u8"`:                   file(`{"b":{"dtype":"u8","shape":[4],"data_offsets":[0,4]}}`, 4),
		`of F32 overflows`:                                 file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0),
		`of U8 overflows`:                                  file(`{"a":{"dtype":"U8","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 0),
		`of F4 does not fill whole bytes`:                  file(`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}}`, 1),
		`tensor "a" ends at 4 of 3 bytes`:                  file(`{`+one+`}`, 3),
		`the tensors end at 4 of 5 bytes`:                  file(`{`+one+`}`, 5),
		`the tensors end at 0 of 1 bytes`:                  file(`{}`, 1),
		`and its shape needs 2 bytes`:                      file(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,4]}}`, 4),
		`has data_offsets [4, 0]`:                          file(`{"z":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}}`, 4),
		`"b" begins at 5 and the data before it ends at 4`: file(`{`+one+`,"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}}`, 6),
		`"b" begins at 3 and the data before it ends at 4`: file(`{`+one+`,"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`, 5),
		`"a" begins at 1 and the data before it ends at 0`: file(`{"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}}`, 4),
	} {
		_, err := Parse(content)
		require.ErrorIs(t, err, ErrFormat, want)
		require.ErrorContains(t, err, want)
	}
}

func TestParse_OrderIsThatOfTheData(t *testing.T) {
	f, err := Parse(file(`{"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"z":{"data_offsets":[1,1],"shape":[0],`+
		`"dtype":"F32"},`+
		`"y":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}   `, 3))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "z", "y", "b"}, f.Names())
	require.Nil(t, f.Metadata())
	require.NoError(t, f.Close())
}

// What a header claims costs nothing; what it holds costs memory in proportion.
func TestParse_Memory(t *testing.T) {
	many := &strings.Builder{}
	for i := range 20000 {
		fmt.Fprintf(many, `"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},`, i)
	}
	for name, content := range map[string][]byte{
		"claimed header": append([]byte{0, 0xe1, 0xf5, 5, 0, 0, 0, 0}, '{'),
		"claimed tensor": file(`{"a":{"dtype":"U8","shape":[1000000000000],"data_offsets":[0,1000000000000]}}`, 0),
		"zeros":          file(`{"a":{"dtype":"U8","shape":[0`+strings.Repeat(",0", 1<<20)+`]}}`, 0),
		"deep":           file(`{"a":`+strings.Repeat(`[`, 5000)+strings.Repeat(`]`, 5000)+`}`, 0),
		"many tensors":   file(`{`+many.String()+`"x":0}`, 0),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(content)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, ErrFormat, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<16+40*len(content)), name)
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var b bytes.Buffer
	require.NoError(t, Write(&b, []Tensor{NewFloat32("a", []int{2}, []float32{1, 2})}, nil))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	f, err := Open(path)
	require.NoError(t, err)
	a, ok := f.Tensor("a")
	require.True(t, ok)
	values, err := a.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2}, values)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	_, ok = f.Tensor("a")
	require.False(t, ok, "a closed file hands out no memory that is gone")
	require.Empty(t, f.Names())

	for i := range b.Len() {
		require.NoError(t, os.WriteFile(path, b.Bytes()[:i], 0o644))
		_, err := Open(path)
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, path)
	}
	_, err = Open(filepath.Dir(path))
	require.ErrorContains(t, err, "not a regular file")
	_, err = Open(path + "x")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestWrite_Alignment(t *testing.T) {
	for i := range 20 {
		var b bytes.Buffer
		require.NoError(t, Write(&b, []Tensor{{strings.Repeat("n", i), "U8", []int{1}, []byte{42}}}, nil))
		header := binary.LittleEndian.Uint64(b.Bytes())
		require.Zero(t, header%8)
		require.Equal(t, byte('{'), b.Bytes()[8])
		require.Equal(t, byte(42), b.Bytes()[8+header])
		require.Equal(t, int(8+header+1), b.Len())
	}
}

func TestWrite_Empty(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Write(&b, nil, map[string]string{}))
	require.Equal(t, file("{}      ", 0), b.Bytes())
	f, err := Parse(b.Bytes())
	require.NoError(t, err)
	require.Empty(t, f.Names())
}

func TestWrite_Refused(t *testing.T) {
	a := Tensor{"a", "U8", []int{1}, []byte{1}}
	for want, c := range map[string]struct {
		tensors  []Tensor
		metadata map[string]string
	}{
		`two tensors are named "a"`:       {tensors: []Tensor{a, a}},
		`may not be named "__metadata__"`: {tensors: []Tensor{{"__metadata__", "U8", []int{1}, []byte{1}}}},
		`is not UTF-8`:                    {tensors: []Tensor{{"\xff", "U8", []int{1}, []byte{1}}}},
		`metadata "k" is not UTF-8`:       {metadata: map[string]string{"k": "\xff"}},
		`needs 8 bytes and there are 12`:  {tensors: []Tensor{NewFloat32("a", []int{2}, make([]float32, 3))}},
		`unknown dtype "X"`:               {tensors: []Tensor{{"a", "X", nil, nil}}},
		`write several files`:             {metadata: map[string]string{"k": strings.Repeat("x", MaxHeader)}},
	} {
		var b bytes.Buffer
		require.ErrorContains(t, Write(&b, c.tensors, c.metadata), want)
		require.Zero(t, b.Len(), "nothing is written")
	}
}

// failing fails the n-th write.
type failing struct{ n int }

var errFull = errors.New("full")

func (w *failing) Write(p []byte) (int, error) {
	if w.n == 0 {
		return 0, errFull
	}
	w.n--
	return len(p), nil
}

func TestWrite_Errors(t *testing.T) {
	tensors := []Tensor{NewFloat32("a", nil, []float32{1}), NewFloat32("b", nil, []float32{2})}
	for n := range 3 {
		require.ErrorIs(t, Write(&failing{n}, tensors, nil), errFull)
	}
	require.NoError(t, Write(&failing{3}, tensors, nil))
}

// Any content is refused with ErrFormat, or is a set that is written and read back equal.
func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f,
		Write(&b, []Tensor{NewFloat32("a", []int{1, 2}, []float32{1, float32(math.NaN())}), {"b", "F4", []int{2}, []byte{1}}},
			map[string]string{"k": "v"}))
	f.Add(b.Bytes())
	f.Add(file(`{"a":{"dtype":"U8","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}}`, 0))
	f.Add(file(`{"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"F16","shape":[],"data_offsets":[2,4]}}`,
		4))
	f.Fuzz(func(t *testing.T, content []byte) {
		first, err := Parse(content)
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		var b bytes.Buffer
		require.NoError(t, Write(&b, first.tensors, first.metadata))
		second, err := Parse(b.Bytes())
		require.NoError(t, err)
		require.Equal(t, first.tensors, second.tensors)
		require.Equal(t, len(first.metadata), len(second.metadata))
		for key, value := range first.metadata {
			require.Equal(t, value, second.metadata[key])
		}
		total := 0
		for _, tensor := range first.tensors {
			total += len(tensor.Data)
			tensor.Float32s() // must not panic
		}
		require.LessOrEqual(t, total, len(content))
	})
}
