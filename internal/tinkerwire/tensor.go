package tinkerwire

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// The types of the elements of a [Tensor]. Requests use the first two.
const (
	Float32  = "float32"
	Int64    = "int64"
	Int32    = "int32"
	BFloat16 = "bfloat16"
)

// dtypes are the values of the enumeration of protobuf.
var dtypes = []string{"", Float32, Int64, Int32, BFloat16}

// Tensor is an array of numbers, dense or in compressed rows (CSR).
type Tensor struct {
	// DType is Float32, with Floats, or Int64, with Ints.
	DType  string
	Shape  []int64 // may be empty for one dimension
	Floats []float32
	Ints   []int64
	// Rows are the offsets of the rows and Columns the columns of the values; nil when all values are listed.
	Rows, Columns []int64
}

// NewFloats returns a dense tensor.
func NewFloats(list []float32, shape ...int64) Tensor {
	return Tensor{DType: Float32, Floats: list, Shape: shapeOr(shape, len(list))}
}

// NewInts returns a dense tensor.
func NewInts(list []int64, shape ...int64) Tensor {
	return Tensor{DType: Int64, Ints: list, Shape: shapeOr(shape, len(list))}
}

func shapeOr(shape []int64, n int) []int64 {
	if shape == nil {
		return []int64{int64(n)}
	}
	return shape
}

// Len is the number of values that are listed.
func (t *Tensor) Len() int { return max(len(t.Floats), len(t.Ints)) }

// Sparse reports whether values are missing.
func (t *Tensor) Sparse() bool { return t.Rows != nil || t.Columns != nil }

// tensorJSON is the form of the JSON dialect.
type tensorJSON struct {
	Data    json.RawMessage `json:"data"`
	DType   string          `json:"dtype"`
	Shape   []int64         `json:"shape,omitempty"`
	Rows    []int64         `json:"sparse_crow_indices,omitempty"`
	Columns []int64         `json:"sparse_col_indices,omitempty"`
}

// UnmarshalJSON reads the form of the JSON dialect.
func (t *Tensor) UnmarshalJSON(data []byte) error {
	var wire tensorJSON
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*t = Tensor{DType: wire.DType, Shape: wire.Shape, Rows: wire.Rows, Columns: wire.Columns}
	switch {
	case len(wire.Data) == 0:
		return errors.New("a tensor has no data")
	case wire.DType == Float32:
		return json.Unmarshal(wire.Data, (*numbers)(&t.Floats))
	case wire.DType == Int64:
		return json.Unmarshal(wire.Data, &t.Ints)
	}
	return fmt.Errorf("a tensor has dtype %.20q, want %s or %s", wire.DType, Float32, Int64)
}

// MarshalJSON writes the form of the JSON dialect, which cannot hold NaN.
func (t Tensor) MarshalJSON() ([]byte, error) {
	var values any = t.Floats
	if t.DType == Int64 {
		values = t.Ints
	}
	if t.Len() == 0 {
		values = []int{}
	}
	data, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tensorJSON{data, t.DType, t.Shape, t.Rows, t.Columns})
}

// appendTensor writes the message Tensor.
func appendTensor(b []byte, t *Tensor) []byte {
	if t.Sparse() {
		sparse := appendBytes(nil, 1, t.bytes())
		sparse = appendBytes(sparse, 2, putLongs(t.Rows))
		sparse = appendBytes(sparse, 3, putLongs(t.Columns))
		b = appendBytes(b, 2, sparse)
	} else {
		b = appendBytes(b, 1, t.bytes())
	}
	for i, dtype := range dtypes {
		if dtype == t.DType {
			b = appendInteger(b, 3, int64(i))
		}
	}
	return appendIntegers(b, 4, t.Shape)
}

// bytes are the values.
func (t *Tensor) bytes() []byte {
	if t.DType == Int64 {
		return putLongs(t.Ints)
	}
	return putFloats(t.Floats)
}

// parseTensor reads the message Tensor.
func parseTensor(message []byte) (t Tensor, err error) {
	var values []byte
	err = eachField(message, func(f field) (err error) {
		switch f.number {
		case 1:
			values = f.bytes()
		case 2:
			values, err = t.parseSparse(f.bytes())
		case 3:
			t.DType, err = dtype(f.integer())
		case 4:
			t.Shape, err = f.integers(t.Shape)
		}
		return err
	})
	if err == nil {
		err = t.fill(values)
	}
	return t, err
}

// parseSparse reads the message of compressed rows, and returns its values.
func (t *Tensor) parseSparse(message []byte) (values []byte, err error) {
	t.Rows, t.Columns = []int64{}, []int64{}
	err = eachField(message, func(f field) (err error) {
		switch f.number {
		case 1:
			values = f.bytes()
		case 2:
			t.Rows, err = longs(f.bytes())
		case 3:
			t.Columns, err = longs(f.bytes())
		}
		return err
	})
	return values, err
}

func dtype(number int64) (string, error) {
	if number < 1 || number >= int64(len(dtypes)) {
		return "", fmt.Errorf("dtype %d is not known", number)
	}
	return dtypes[number], nil
}

// fill reads the values of a tensor whose type is known.
func (t *Tensor) fill(values []byte) (err error) {
	switch t.DType {
	case Float32:
		t.Floats, err = floats(values)
	case Int64:
		t.Ints, err = longs(values)
	case Int32:
		var list []int32
		list, err = ints(values)
		t.DType, t.Ints = Int64, make([]int64, len(list))
		for i, x := range list {
			t.Ints[i] = int64(x)
		}
	default:
		err = fmt.Errorf("a tensor has dtype %q, want %s or %s", t.DType, Float32, Int64)
	}
	return err
}

// Dense returns the tensor with all values, 0 where a sparse one has none. It has at most limit values.
func (t *Tensor) Dense(limit int) (Tensor, error) {
	if !t.Sparse() {
		return *t, t.checkShape(t.Len())
	}
	if len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1 {
		return Tensor{}, fmt.Errorf("a sparse tensor has shape %v, want two dimensions of at least 1", t.Shape)
	}
	rows, columns := t.Shape[0], t.Shape[1]
	if rows > int64(limit)/columns {
		return Tensor{}, fmt.Errorf("a sparse tensor of shape %v has more than %d values", t.Shape, limit)
	}
	if int64(len(t.Rows)) != rows+1 || len(t.Columns) != t.Len() {
		return Tensor{}, fmt.Errorf("a sparse tensor of shape %v has %d row offsets, %d columns and %d values",
			t.Shape, len(t.Rows), len(t.Columns), t.Len())
	}
	out := Tensor{DType: t.DType, Shape: t.Shape}
	if t.DType == Int64 {
		out.Ints = make([]int64, rows*columns)
	} else {
		out.Floats = make([]float32, rows*columns)
	}
	return out, t.scatter(&out)
}

// scatter writes the values of a sparse tensor into a dense one.
func (t *Tensor) scatter(out *Tensor) error {
	columns := t.Shape[1]
	for row := range t.Shape[0] {
		from, to := t.Rows[row], t.Rows[row+1]
		if from < 0 || to < from || to > int64(t.Len()) {
			return fmt.Errorf("row %d of a sparse tensor has the values %d to %d of %d", row, from, to, t.Len())
		}
		for i := from; i < to; i++ {
			column := t.Columns[i]
			if column < 0 || column >= columns {
				return fmt.Errorf("a sparse tensor has column %d of %d", column, columns)
			}
			if t.DType == Int64 {
				out.Ints[row*columns+column] = t.Ints[i]
			} else {
				out.Floats[row*columns+column] = t.Floats[i]
			}
		}
	}
	return nil
}

// checkShape compares a shape with a number of values. Only one of a single dimension may be empty: in others a 0 would
// let the other dimensions be anything.
func (t *Tensor) checkShape(n int) error {
	if len(t.Shape) == 0 || len(t.Shape) == 1 && t.Shape[0] == int64(n) {
		return nil
	}
	size := int64(1)
	for _, d := range t.Shape {
		if d < 1 || size > int64(n)/d {
			return fmt.Errorf("a tensor of %d values has shape %v", n, t.Shape)
		}
		size *= d
	}
	if size != int64(n) {
		return fmt.Errorf("a tensor of shape %v has %d values", t.Shape, n)
	}
	return nil
}

// parseTensorEntry reads an entry of a map to tensors. One without a tensor is an error.
func parseTensorEntry(f field, into map[string]Tensor) error {
	var t Tensor
	key, err := f.entry(func(f field) (err error) {
		t, err = parseTensor(f.bytes())
		return err
	})
	if err == nil && t.DType == "" {
		err = fmt.Errorf("%.20q has no tensor", key)
	}
	into[key] = t
	return err
}

// appendEntry writes an entry of a map.
func appendEntry(b []byte, number protowire.Number, key string, value []byte) []byte {
	return appendBytes(b, number, append(appendText(nil, 1, key), value...))
}
