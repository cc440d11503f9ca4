package tinkerwire

import (
	"encoding/json"

	"fmt"
	"maps"
	"slices"
)

// Input is what a model reads: chunks of tokens or of other media.
type Input struct {
	Chunks []Chunk `json:"chunks"`
}

// Tokens returns the ids of an input that is text, and an error for other media.
func (in *Input) Tokens() ([]int32, error) {
	var out []int32
	for i := range in.Chunks {
		if kind := in.Chunks[i].Type; kind != ChunkText {
			return nil, fmt.Errorf("a chunk of type %.40q is not supported, only %s", kind, ChunkText)
		}
		out = append(out, in.Chunks[i].Tokens...)
	}
	return out, nil
}

// NewInput returns an input of tokens.
func NewInput(tokens []int32) Input {
	return Input{Chunks: []Chunk{{Type: ChunkText, Tokens: tokens}}}
}

// ChunkText is the type of a chunk of tokens.
const ChunkText = "encoded_text"

// Chunk is a part of an input. Only those of tokens are read; of others the type is known.
type Chunk struct {
	Type   string  `json:"type"`
	Tokens []int32 `json:"tokens"`
}

// Datum is an example to train on: N tokens of input, and the tensors of the loss for each of them.
type Datum struct {
	Input  Input             `json:"model_input"`
	Inputs map[string]Tensor `json:"loss_fn_inputs"`
}

// Bounds are how many elements a ForwardBackwardRequest may have. They are checked before an element takes memory.
type Bounds struct {
	Data    int // examples
	Chunks  int // of all examples
	Tensors int // of all examples
	Options int // of the loss
}

// take counts one element of a kind down.
func take(left *int, kind string) {
	if *left--; *left < 0 {
		damaged("there are more %s than a request may have; split it", kind)
	}
}

// parseDatum reads the message Datum. Spans of provenance are skipped.
func parseDatum(message []byte, left *Bounds) Datum {
	d := Datum{Inputs: map[string]Tensor{}}
	for f := range fields(message) {
		switch f.number {
		case 1:
			take(&left.Chunks, "chunks")
			d.Input.Chunks = append(d.Input.Chunks, parseChunk(f.bytes()))
		case 2:
			take(&left.Tensors, "tensors")
			var t Tensor
			key := f.entry(func(f field) { t = parseTensor(f.bytes()) })
			if t.DType == "" {
				damaged("%.20q has no tensor", key)
			}
			d.Inputs[key] = t
		}
	}
	return d
}

func parseChunk(message []byte) (c Chunk) {
	for f := range fields(message) {
		switch f.number {
		case 1:
			c.Type = ChunkText
			for f := range fields(f.bytes()) {
				if f.number == 1 {
					c.Tokens = numbersOf[int32](f.bytes())
				}
			}
		case 2:
			c.Type = "image"
		case 3:
			c.Type = "dmel"
		}
	}
	return c
}

func appendDatum(b []byte, d *Datum) []byte {
	for i := range d.Input.Chunks {
		b = appendBytes(b, 1, appendBytes(nil, 1, appendBytes(nil, 1, put(d.Input.Chunks[i].Tokens))))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Inputs)) {
		t := d.Inputs[name]
		b = appendEntry(b, 2, name, appendBytes(nil, 2, appendTensor(nil, &t)))
	}
	return b
}

// ForwardRequest is a request for a forward pass, with gradients or without.
type ForwardRequest struct {
	ModelID     string
	SeqID       int
	Data        []Datum
	Loss        string
	Config      map[string]float64
	Text        map[string]string // options of the loss that are no numbers
	ForwardOnly bool
}

// ParseForwardRequest reads the message ForwardBackwardRequest.
func ParseForwardRequest(message []byte, bounds Bounds) (_ *ForwardRequest, err error) {
	defer catch(&err, "the body is no ForwardBackwardRequest: ")
	r := &ForwardRequest{}
	for f := range fields(message) {
		switch f.number {
		case 1:
			r.ModelID = f.text()
		case 2:
			r.SeqID = int(int32(f.integer()))
		case 3:
			take(&bounds.Data, "data")
			r.Data = append(r.Data, parseDatum(f.bytes(), &bounds))
		case 4:
			r.Loss = f.text()
		case 5, 7:
			take(&bounds.Options, "options of the loss")
			r.parseConfig(f)
		case 6:
			r.ForwardOnly = f.integer() != 0
		}
	}
	return r, nil
}

// parseConfig reads an option of the loss: of field 5, a number, or of field 7, a number or a text.
func (r *ForwardRequest) parseConfig(f field) {
	var value any = ""
	key := f.entry(func(option field) {
		if f.number == 5 {
			value = option.double()
			return
		}
		for f := range fields(option.bytes()) {
			switch _, number := value.(float64); {
			case f.number == 1:
				value = f.double()
			case f.number == 2 && !number:
				value = f.text()
			}
		}
	})
	r.set(key, value)
}

// set sets an option of the loss: a number or a text. It reports whether value is one of these.
func (r *ForwardRequest) set(key string, value any) bool {
	switch value := value.(type) {
	case float64:
		if r.Config == nil {
			r.Config = map[string]float64{}
		}
		r.Config[key] = value
	case string:
		if r.Text == nil {
			r.Text = map[string]string{}
		}
		r.Text[key] = value
	default:
		return false
	}
	return true
}

// Proto writes the message ForwardBackwardRequest. Text is not written.
func (r *ForwardRequest) Proto() []byte {
	b := appendText(nil, 1, r.ModelID)
	b = appendInteger(b, 2, int64(r.SeqID))
	for i := range r.Data {
		b = appendBytes(b, 3, appendDatum(nil, &r.Data[i]))
	}
	b = appendText(b, 4, r.Loss)
	for _, key := range slices.Sorted(maps.Keys(r.Config)) {
		b = appendEntry(b, 5, key, appendDouble(nil, 2, r.Config[key]))
		b = appendEntry(b, 7, key, appendBytes(nil, 2, appendDouble(nil, 1, r.Config[key])))
	}
	if r.ForwardOnly {
		b = appendInteger(b, 6, 1)
	}
	return b
}

// forwardJSON is the form of the JSON dialect: the data are under another key for each of the two routes.
type forwardJSON struct {
	Backward *forwardInput `json:"forward_backward_input,omitempty"`
	Forward  *forwardInput `json:"forward_input,omitempty"`
	ModelID  string        `json:"model_id"`
	SeqID    int           `json:"seq_id"`
}

type forwardInput struct {
	Data   []Datum        `json:"data"`
	Loss   string         `json:"loss_fn"`
	Config map[string]any `json:"loss_fn_config,omitempty"`
}

// UnmarshalJSON reads the form of the JSON dialect.
func (r *ForwardRequest) UnmarshalJSON(data []byte) error {
	var wire forwardJSON
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*r = ForwardRequest{ModelID: wire.ModelID, SeqID: wire.SeqID, ForwardOnly: wire.Forward != nil}
	in := wire.Backward
	if r.ForwardOnly {
		in = wire.Forward
	}
	if in == nil {
		return fmt.Errorf("there is neither forward_backward_input nor forward_input")
	}
	r.Data, r.Loss = in.Data, in.Loss
	for key, value := range in.Config {
		if value != nil && !r.set(key, value) {
			return fmt.Errorf("loss_fn_config %.40q is neither a number nor a text", key)
		}
	}
	return nil
}

// MarshalJSON writes the form of the JSON dialect.
func (r ForwardRequest) MarshalJSON() ([]byte, error) {
	in := &forwardInput{Data: r.Data, Loss: r.Loss}
	if len(r.Config) > 0 {
		in.Config = map[string]any{}
		for key, x := range r.Config {
			in.Config[key] = x
		}
	}
	wire := forwardJSON{ModelID: r.ModelID, SeqID: r.SeqID}
	if r.ForwardOnly {
		wire.Forward = in
	} else {
		wire.Backward = in
	}
	return json.Marshal(wire)
}

// Size is about how many bytes the numbers of a datum take in a request.
func (d *Datum) Size() int {
	size := 0
	for i := range d.Input.Chunks {
		size += 4 * len(d.Input.Chunks[i].Tokens)
	}
	for _, t := range d.Inputs {
		size += 4*len(t.Floats) + 8*len(t.Ints)
	}
	return size
}

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
	b := appendBytes(appendBytes(nil, 1, data), 2, put(offsets))
	first := o.Outputs[0][name]
	b = appendInteger(b, 3, int64(slices.Index(dtypes, first.DType)))
	if len(first.Shape) > 1 {
		b = appendIntegers(b, 4, first.Shape[1:])
	}
	return b
}

// ParseForwardOutput reads the message ForwardBackwardOutput.
func ParseForwardOutput(message []byte) (_ *ForwardOutput, err error) {
	defer catch(&err, "the body is no ForwardBackwardOutput: ")
	o := &ForwardOutput{Metrics: map[string]float64{}}
	for f := range fields(message) {
		switch f.number {
		case 1:
			o.Type = f.text()
		case 2:
			o.parseRecord(f.bytes())
		case 3:
			var x float64
			key := f.entry(func(f field) { x = f.double() })
			o.Metrics[key] = x
		}
	}
	return o, nil
}

// parseRecord reads the message ArrayRecord.
func (o *ForwardOutput) parseRecord(message []byte) {
	tensors := map[string][]Tensor{}
	count, longest := int64(-1), 0
	for f := range fields(message) {
		switch f.number {
		case 2:
			var list []Tensor
			key := f.entry(func(f field) { list = parseBatched(f.bytes()) })
			tensors[key], longest = list, max(longest, len(list))
		case 3:
			count = f.integer()
		}
	}
	if count >= 0 && count != int64(longest) {
		damaged("a record of %d data has tensors of %d", count, longest)
	}
	from := len(o.Outputs)
	for range longest {
		o.Outputs = append(o.Outputs, map[string]Tensor{})
	}
	for name, list := range tensors {
		if len(list) != longest {
			damaged("%.40q has tensors of %d data, others of %d", name, len(list), longest)
		}
		for i, t := range list {
			o.Outputs[from+i][name] = t
		}
	}
}

// parseBatched reads the message BatchedTensor: the tensors of one name, each between neighbouring offsets.
func parseBatched(message []byte) []Tensor {
	var data []byte
	var offsets, trailing []int64
	kind := ""
	for f := range fields(message) {
		switch f.number {
		case 1:
			data = f.bytes()
		case 2:
			offsets = numbersOf[int64](f.bytes())
		case 3:
			kind = dtype(f.integer())
		case 4:
			trailing = f.integers(trailing)
		}
	}
	if len(offsets) == 0 {
		damaged("a batched tensor has no offsets")
	}
	row := int64(1)
	for _, d := range trailing {
		if d <= 0 || row > int64(1)<<32/d {
			damaged("a batched tensor has the trailing shape %v", trailing)
		}
		row *= d
	}
	list := make([]Tensor, len(offsets)-1)
	for i := range list {
		from, to := offsets[i], offsets[i+1]
		if from < 0 || to < from || to > int64(len(data)) {
			damaged("a batched tensor has the offsets %d and %d for %d bytes", from, to, len(data))
		}
		t := &list[i]
		t.DType = kind
		t.fill(data[from:to])
		if int64(t.Len())%row != 0 {
			damaged("a tensor of %d values has the trailing shape %v", t.Len(), trailing)
		}
		t.Shape = append([]int64{int64(t.Len()) / row}, trailing...)
	}
	return list
}
