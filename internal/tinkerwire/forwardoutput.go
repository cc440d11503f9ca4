package tinkerwire

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ForwardOutput is the result of a forward pass.
type ForwardOutput struct {
	Type string `json:"loss_fn_output_type"`
	// Outputs has the tensors of each datum; "logprobs" are those of its targets.
	Outputs []map[string]Tensor `json:"loss_fn_outputs"`
	// Metrics have names of the form NAME:REDUCTION, where the reduction (mean, sum, min, max) says how clients merge
	// those of several requests.
	Metrics map[string]float64 `json:"metrics"`
}

// Proto writes the message ForwardBackwardOutput, with one record for all data. Every datum has the same names, and
// tensors of one dimension.
func (o *ForwardOutput) Proto() []byte {
	b := appendText(nil, 1, o.Type)
	if len(o.Outputs) > 0 {
		record := appendText(nil, 1, o.Type)
		for _, name := range slices.Sorted(maps.Keys(o.Outputs[0])) {
			record = appendEntry(record, 2, name, appendBytes(nil, 2, o.batched(name)))
		}
		b = appendBytes(b, 2, appendInteger(record, 3, int64(len(o.Outputs))))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Metrics)) {
		b = appendEntry(b, 3, name, appendDouble(nil, 2, o.Metrics[name]))
	}
	return b
}

// batched writes the message BatchedTensor with the tensors of one name.
func (o *ForwardOutput) batched(name string) []byte {
	var data []byte
	offsets := []int64{0}
	for _, output := range o.Outputs {
		t := output[name]
		data = append(data, t.bytes()...)
		offsets = append(offsets, int64(len(data)))
	}
	b := appendBytes(nil, 1, data)
	b = appendBytes(b, 2, putLongs(offsets))
	first := o.Outputs[0][name]
	b = appendInteger(b, 3, int64(slices.Index(dtypes, first.DType)))
	if len(first.Shape) > 1 {
		b = appendIntegers(b, 4, first.Shape[1:])
	}
	return b
}

// ParseForwardOutput reads the message ForwardBackwardOutput.
func ParseForwardOutput(message []byte) (*ForwardOutput, error) {
	o := &ForwardOutput{Metrics: map[string]float64{}}
	err := eachField(message, func(f field) error {
		switch f.number {
		case 1:
			o.Type = f.text()
		case 2:
			return o.parseRecord(f.bytes())
		case 3:
			var x float64
			key, err := f.entry(func(f field) error { x = f.double(); return nil })
			o.Metrics[key] = x
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the body is no ForwardBackwardOutput: %w", err)
	}
	return o, nil
}

// parseRecord reads the message ArrayRecord.
func (o *ForwardOutput) parseRecord(message []byte) error {
	fields := map[string][]Tensor{}
	count, longest := int64(-1), 0
	err := eachField(message, func(f field) error {
		switch f.number {
		case 2:
			var list []Tensor
			key, err := f.entry(func(f field) (err error) {
				list, err = parseBatched(f.bytes())
				return err
			})
			fields[key], longest = list, max(longest, len(list))
			return err
		case 3:
			count = f.integer()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if count >= 0 && count != int64(longest) {
		return fmt.Errorf("a record of %d data has tensors of %d", count, longest)
	}
	from := len(o.Outputs)
	for range longest {
		o.Outputs = append(o.Outputs, map[string]Tensor{})
	}
	for name, list := range fields {
		if len(list) != longest {
			return fmt.Errorf("%.40q has tensors of %d data, others of %d", name, len(list), longest)
		}
		for i, t := range list {
			o.Outputs[from+i][name] = t
		}
	}
	return nil
}

// parseBatched reads the message BatchedTensor: the tensors of one name.
func parseBatched(message []byte) ([]Tensor, error) {
	var data []byte
	var offsets, trailing []int64
	kind := ""
	err := eachField(message, func(f field) (err error) {
		switch f.number {
		case 1:
			data = f.bytes()
		case 2:
			offsets, err = longs(f.bytes())
		case 3:
			kind, err = dtype(f.integer())
		case 4:
			trailing, err = f.integers(trailing)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return cut(data, offsets, Tensor{DType: kind, Shape: trailing})
}

// cut makes a tensor of each pair of neighbouring offsets. like has the type and the shape without its first dimension.
func cut(data []byte, offsets []int64, like Tensor) ([]Tensor, error) {
	if len(offsets) == 0 {
		return nil, errors.New("a batched tensor has no offsets")
	}
	row := int64(1)
	for _, d := range like.Shape {
		if d <= 0 || row > int64(1)<<32/d {
			return nil, fmt.Errorf("a batched tensor has the trailing shape %v", like.Shape)
		}
		row *= d
	}
	list := make([]Tensor, len(offsets)-1)
	for i := range list {
		from, to := offsets[i], offsets[i+1]
		if from < 0 || to < from || to > int64(len(data)) {
			return nil, fmt.Errorf("a batched tensor has the offsets %d and %d for %d bytes", from, to, len(data))
		}
		t := Tensor{DType: like.DType}
		if err := t.fill(data[from:to]); err != nil {
			return nil, err
		}
		if int64(t.Len())%row != 0 {
			return nil, fmt.Errorf("a tensor of %d values has the trailing shape %v", t.Len(), like.Shape)
		}
		t.Shape = append([]int64{int64(t.Len()) / row}, like.Shape...)
		list[i] = t
	}
	return list, nil
}
