package tinkerwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

func appendTensor(b []byte, t *Tensor) []byte {
	if t.Sparse() {
		b = appendBytes(b, 2, appendBytes(appendBytes(appendBytes(nil, 1, t.bytes()), 2, put(t.Rows)), 3, put(t.Columns)))
	} else {
		b = appendBytes(b, 1, t.bytes())
	}
	b = appendInteger(b, 3, int64(max(slices.Index(dtypes, t.DType), 0)))
	return appendIntegers(b, 4, t.Shape)
}

func (t *Tensor) bytes() []byte {
	if t.DType == Int64 {
		return put(t.Ints)
	}
	return put(t.Floats)
}

func parseTensor(message []byte) (t Tensor) {
	var values []byte
	for f := range fields(message) {
		switch f.number {
		case 1:
			values = f.bytes()
		case 2: // compressed rows
			t.Rows, t.Columns = []int64{}, []int64{}
			for f := range fields(f.bytes()) {
				switch f.number {
				case 1:
					values = f.bytes()
				case 2:
					t.Rows = numbersOf[int64](f.bytes())
				case 3:
					t.Columns = numbersOf[int64](f.bytes())
				}
			}
		case 3:
			t.DType = dtype(f.integer())
		case 4:
			t.Shape = f.integers(t.Shape)
		}
	}
	t.fill(values)
	return t
}

func dtype(number int64) string {
	if number < 1 || number >= int64(len(dtypes)) {
		damaged("dtype %d is not known", number)
	}
	return dtypes[number]
}

// fill reads the values of a tensor whose type is known.
func (t *Tensor) fill(values []byte) {
	switch t.DType {
	case Float32:
		t.Floats = numbersOf[float32](values)
	case Int64:
		t.Ints = numbersOf[int64](values)
	case Int32:
		t.DType, t.Ints = Int64, []int64{}
		for _, x := range numbersOf[int32](values) {
			t.Ints = append(t.Ints, int64(x))
		}
	default:
		damaged("a tensor has dtype %q, want %s or %s", t.DType, Float32, Int64)
	}
}

// Dense returns the tensor with all values, 0 where a sparse one has none. It has at most limit values.
func (t *Tensor) Dense(limit int) (out Tensor, err error) {
	if !t.Sparse() {
		return *t, t.checkShape(t.Len())
	}
	defer catch(&err, "")
	if len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1 {
		damaged("a sparse tensor has shape %v, want two dimensions of at least 1", t.Shape)
	}
	rows, columns := t.Shape[0], t.Shape[1]
	if rows > int64(limit)/columns {
		damaged("a sparse tensor of shape %v has more than %d values", t.Shape, limit)
	}
	if int64(len(t.Rows)) != rows+1 || len(t.Columns) != t.Len() {
		damaged("a sparse tensor of shape %v has %d row offsets, %d columns and %d values",
			t.Shape, len(t.Rows), len(t.Columns), t.Len())
	}
	out = Tensor{DType: t.DType, Shape: t.Shape}
	if t.DType == Int64 {
		out.Ints = scatter(t, t.Ints)
	} else {
		out.Floats = scatter(t, t.Floats)
	}
	return out, nil
}

// scatter writes the values of a sparse tensor where a dense one has them.
func scatter[T any](t *Tensor, values []T) []T {
	rows, columns := t.Shape[0], t.Shape[1]
	out := make([]T, rows*columns)
	for row := range rows {
		from, to := t.Rows[row], t.Rows[row+1]
		if from < 0 || to < from || to > int64(len(values)) {
			damaged("row %d of a sparse tensor has the values %d to %d of %d", row, from, to, len(values))
		}
		for i := from; i < to; i++ {
			column := t.Columns[i]
			if column < 0 || column >= columns {
				damaged("a sparse tensor has column %d of %d", column, columns)
			}
			out[row*columns+column] = values[i]
		}
	}
	return out
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
