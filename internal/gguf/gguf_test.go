package gguf

import (
	"encoding/binary"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/ggml"
)

// content builds a file from numbers, as little-endian as their type is wide, strings with their length, and bytes.
func content(parts ...any) []byte {
	b := []byte("GGUF")
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			b = append(binary.LittleEndian.AppendUint64(b, uint64(len(p))), p...)
		case []byte:
			b = append(b, p...)
		case int: // most counts and types
			b = binary.LittleEndian.AppendUint32(b, uint32(p))
		default:
			var err error
			if b, err = binary.Append(b, binary.LittleEndian, part); err != nil {
				panic(err)
			}
		}
	}
	return b
}

// padded continues a file to the next multiple of 32, where its data begins.
func padded(b []byte, data int) []byte {
	return slices.Concat(b, make([]byte, (32-len(b)%32)%32+data))
}

const (
	u0 = uint64(0)
	u1 = uint64(1)
	u2 = uint64(2)
)

func TestParse_Malformed(t *testing.T) {
	for want, b := range map[string][]byte{
		"it is truncated": {},
		"header needs 4 more bytes and the file has 3":     []byte("GGU"),
		"does not begin with GGUF":                         []byte("GGML\x03\x00\x00\x00"),
		"it is version 1":                                  content(1, u0, u0),
		"it is version 4":                                  content(4, u0, u0),
		"it is version 0":                                  content(0, u0, u0),
		"big-endian":                                       content(3<<24, u0, u0),
		"needs 8 more bytes and the file has 3":            content(3, u0, []byte{1, 2, 3}),
		"file has 0":                                       content(3, u1, u0),
		"needs 18446744073709551615":                       content(3, u0, u1, ^u0),
		`a key of the metadata is ""`:                      content(3, u0, u1, "", 0, 0),
		`a key of the metadata is "\xff"`:                  content(3, u0, u1, "\xff", 0, 0),
		`the key "k" twice`:                                content(3, u0, u2, "k", 0, uint8(1), "k", 0, uint8(1)),
		`"k" is of the unknown type 13`:                    content(3, u0, u1, "k", 13),
		`list of the unknown type 9`:                       content(3, u0, u1, "k", 9, 9, u0),
		`claims 9 elements and the file has 8`:             content(3, u0, u1, "k", 9, 0, uint64(9), u0),
		`claims 2 elements and the file has 15`:            content(3, u0, u1, "k", 9, 8, u2, make([]byte, 15)),
		`claims 18446744073709551615 elements`:             content(3, u0, u1, "k", 9, 12, ^u0, u0),
		"2 where true or false":                            content(3, u0, u1, "k", 7, uint8(2)),
		"general.alignment is 24":                          content(3, u0, u1, alignmentKey, 4, 24),
		"general.alignment is 0":                           content(3, u0, u1, alignmentKey, 4, 0),
		"general.alignment is 64, which is not a u":        content(3, u0, u1, alignmentKey, 10, uint64(64)),
		`the name of a tensor is ""`:                       content(3, u1, u0, "", 0, 0, u0),
		`two tensors are named "a"`:                        padded(content(3, u2, u0, "a", 0, 0, u0, "a", 0, 0, uint64(32)), 64),
		`"a" has 5 dimensions`:                             content(3, u1, u0, "a", 5),
		`"a" has a dimension of 9223372036854775808`:       content(3, u1, u0, "a", 1, uint64(1<<63), 0, u0),
		`overflows`:                                        content(3, u1, u0, "a", 2, uint64(1<<32), uint64(1<<32), 0, u0),
		`shape [4 4611686018427387904] overflow`:           content(3, u1, u0, "a", 2, uint64(1<<62), uint64(4), 24, u0),
		`shape [2305843009213693952] overflows`:            content(3, u1, u0, "a", 1, uint64(1<<61), 28, u0),
		`unknown type 4`:                                   content(3, u1, u0, "a", 1, u1, 4, u0),
		`rows of 33 are not whole blocks of 32`:            content(3, u1, u0, "a", 2, uint64(33), uint64(32), int(ggml.Q4_0), u0),
		`rows of 1 are not whole blocks of 256`:            content(3, u1, u0, "a", 0, int(ggml.Q6_K), u0),
		`"a" begins at 32, want 0`:                         padded(content(3, u1, u0, "a", 0, 0, uint64(32)), 64),
		`"b" begins at 0, want 32`:                         padded(content(3, u2, u0, "a", 0, 0, u0, "b", 0, 0, u0), 64),
		`"b" begins at 64, want`:                           padded(content(3, u2, u0, "a", 0, 0, u0, "b", 0, 0, uint64(64)), 128),
		`"a" needs 4 bytes from 0 on, and the data has 3`:  padded(content(3, u1, u0, "a", 0, 0, u0), 3),
		`"a" needs 4 bytes from 0 on, and the data has 0`:  content(3, u1, u0, "a", 0, 0, u0),
		`"b" needs 4 bytes from 32 on, and the data has 4`: padded(content(3, u2, u0, "a", 0, 0, u0, "b", 0, 0, uint64(32)), 4),
	} {
		_, err := Parse(b)
		require.ErrorIs(t, err, ErrFormat, want)
		require.ErrorContains(t, err, want)
	}
}

// TestParse_Valid: what is unusual and allowed. A bigger alignment and bytes behind the data are.
func TestParse_Valid(t *testing.T) {
	f, err := Parse(content(2, u0, u0))
	require.NoError(t, err)
	require.Empty(t, f.Names())
	require.Equal(t, uint32(2), f.version)

	f, err = Parse(padded(content(3, u2, u1, "k", 9, 8, u0, "none", 2, uint64(32), u0, int(ggml.Q4_0), u0, "b", 1, u2,
		int(ggml.F16), u0), 9))
	require.NoError(t, err)
	require.Equal(t, []string{"none", "b"}, f.Names())
	v, _ := f.Value("k")
	require.Equal(t, []string{}, v)
	none, _ := f.Tensor("none")
	require.Equal(t, []int{0, 32}, none.Shape)
	values, err := none.Float32s()
	require.NoError(t, err)
	require.Empty(t, values)

	b := content(3, u1, u1, alignmentKey, 4, 1, "scalar", 0, 0, u0, []byte{0, 0, 128, 63})
	f, err = Parse(b)
	require.NoError(t, err)
	scalar, _ := f.Tensor("scalar")
	values, err = scalar.Float32s()
	require.NoError(t, err)
	require.Equal(t, []float32{1}, values)
}

// TestFloat32s_Refused: what cannot be converted is named, with what can.
func TestFloat32s_Refused(t *testing.T) {
	f, err := Parse(padded(content(3, u1, u0, "a", 1, uint64(256), 16, u0), 66))
	require.NoError(t, err, "the other tensors of the file may be used")
	a, _ := f.Tensor("a")
	_, err = a.Float32s()
	require.ErrorContains(t, err, `"a" is IQ2_XXS`)
	require.ErrorContains(t, err, "Q4_K_M")
	_, err = Tensor{Name: "x", Type: ggml.Q8_0, Shape: []int{32}, Data: make([]byte, 33)}.Float32s()
	require.ErrorContains(t, err, "needs 34 bytes and there are 33")
	_, err = Tensor{Name: "x", Type: ggml.Q8_0, Shape: []int{31}, Data: make([]byte, 34)}.Float32s()
	require.ErrorContains(t, err, "not whole blocks")
}

// TestParse_Memory: what a file claims costs nothing; what it holds costs memory in proportion.
func TestParse_Memory(t *testing.T) {
	for name, b := range map[string][]byte{
		"tensors": content(3, uint64(1<<40), u0),
		"values":  content(3, u0, uint64(1<<40)),
		"string":  content(3, u0, u1, uint64(1<<40), "x"),
		"list":    content(3, u0, u1, "k", 9, 0, uint64(1<<40), make([]byte, 100)),
		"strings": content(3, u0, u1, "k", 9, 8, uint64(1<<20), make([]byte, 1<<20)),
		"tensor":  padded(content(3, u1, u0, "a", 1, uint64(1<<40), int(ggml.F32), u0), 100),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse(b)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, ErrFormat, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<16+4*len(b)), name)
	}
}

func TestOpen(t *testing.T) {
	b, err := os.ReadFile("testdata/python.gguf")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "f.gguf")
	for _, n := range []int{0, 3, 23, 24, 100, 1000, 3000, len(b) - 2000} {
		require.NoError(t, os.WriteFile(path, b[:n], 0o600))
		_, err := Open(path)
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "truncated")
	}
	_, err = Open(filepath.Dir(path))
	require.ErrorContains(t, err, "not a regular file")
	_, err = Open(path + "x")
	require.ErrorIs(t, err, fs.ErrNotExist)

	f, err := Open("testdata/python.gguf")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	_, ok := f.Tensor("f32")
	require.False(t, ok, "a closed file hands out no memory that is gone")
	text, _ := f.Value("one.string")
	require.Equal(t, "żółw", text)
}

// FuzzParse: any content is refused with ErrFormat, or is a file whose tensors lie in it, one after the other, and can
// be converted. It is never a panic.
func FuzzParse(f *testing.F) {
	f.Add(padded(content(3, u2, u2, "k", 9, 8, u1, "v", "b", 7, true, "a", 2, uint64(32), u2, int(ggml.Q4_0), u0, "b",
		0, 0, uint64(64)), 68))
	f.Add(content(3, u1, u1, alignmentKey, 4, 1, "s", 0, int(ggml.BF16), u0, []byte{1, 2}))
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := Parse(content)
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		total := 0
		for _, name := range file.Names() {
			tensor, ok := file.Tensor(name)
			require.True(t, ok)
			total += len(tensor.Data)
			values, err := tensor.Float32s()
			if err != nil {
				continue // a type that is only known by its size
			}
			elements := 1
			for _, dim := range tensor.Shape {
				elements *= dim
			}
			require.Len(t, values, elements)
		}
		require.LessOrEqual(t, total, len(content), "no two share a byte")
		for _, key := range file.keys {
			_, ok := file.Value(key)
			require.True(t, ok)
		}
	})
}

func BenchmarkFloat32s(b *testing.B) {
	for _, kind := range []ggml.Type{ggml.F32, ggml.F16, ggml.Q8_0, ggml.Q4_0, ggml.Q4_K, ggml.Q6_K} {
		b.Run(kind.String(), func(b *testing.B) {
			t := Tensor{Type: kind, Shape: []int{1 << 20}, Data: make([]byte, kind.Bytes(1<<20))}
			b.SetBytes(int64(4 << 20)) // of float32
			for b.Loop() {
				if _, err := t.Float32s(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestTensor_Read: parts of a tensor are what the whole is there, wherever they begin and end.
func TestTensor_Read(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for kind := range ggml.Type(256) {
		if !kind.Convertible() {
			continue
		}
		block := kind.Block()
		x := Tensor{Name: "x", Type: kind, Shape: []int{3, block}, Data: make([]byte, kind.Bytes(3*block))}
		for i := range x.Data {
			x.Data[i] = byte(rng.Uint32()) & 0x3f // no exponent of NaN
		}
		whole, err := x.Float32s()
		require.NoError(t, err)
		for first := range whole {
			for _, n := range []int{0, 1, block / 2, block, block + 1, len(whole) - first} {
				if first+n > len(whole) {
					continue
				}
				part := make([]float32, n)
				x.Read(part, first)
				require.Equal(t, whole[first:first+n], part, "%v from %d", kind, first)
			}
		}
	}
}
