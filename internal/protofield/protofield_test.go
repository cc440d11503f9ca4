package protofield

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// message has a field of each kind.
func message() []byte {
	b := AppendVarint(nil, 1, 300)
	b = AppendFloat(b, 2, 0.5)
	b = AppendDouble(b, 3, -2)
	b = AppendBytes(b, 4, nil)
	b = AppendText(AppendText(b, 5, ""), 5, "text")
	b = AppendDoubles(b, 6, []float64{1, 2})
	b = protowire.AppendTag(b, 7, protowire.StartGroupType)
	return protowire.AppendTag(b, 7, protowire.EndGroupType)
}

// What is written is read. An empty field of bytes is not nil, and a group is passed over.
func TestAll_Fields(t *testing.T) {
	var list []Field
	for f, err := range All(message()) {
		require.NoError(t, err)
		list = append(list, f)
	}
	require.Equal(t, []Field{
		{Number: 1, Bits: 300}, {Number: 2, Bits: uint64(math.Float32bits(0.5))},
		{Number: 3, Bits: math.Float64bits(-2)}, {Number: 4, Data: []byte{}}, {Number: 5, Data: []byte("text")},
		{Number: 6, Data: append(protowire.AppendFixed64(nil, math.Float64bits(1)),
			protowire.AppendFixed64(nil, math.Float64bits(2))...)},
		{Number: 7},
	}, list)
}

// A message that is cut off within a field is an error, and one that is cut off after a field has the fields so far.
func TestAll_Damaged(t *testing.T) {
	b := message()
	ends := map[int]bool{0: true}
	for rest := b; len(rest) > 0; {
		_, n := next(rest)
		rest = rest[n:]
		ends[len(b)-len(rest)] = true
	}
	for size := range b {
		var last error
		for _, err := range All(b[:size]) {
			last = err
		}
		require.Equal(t, ends[size], last == nil, "of %d bytes", size)
	}
}

// A repeated field of numbers is packed, or one number at a time.
func TestField_Varints(t *testing.T) {
	packed := protowire.AppendVarint(protowire.AppendVarint(nil, 1), 300)
	list, err := Field{Data: packed}.Varints()
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 300}, list)
	list, err = Field{Bits: 7}.Varints()
	require.NoError(t, err)
	require.Equal(t, []uint64{7}, list)
	_, err = Field{Data: packed[:2]}.Varints()
	require.Error(t, err)
}
