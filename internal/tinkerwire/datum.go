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
func take(left *int, kind string) error {
	if *left--; *left < 0 {
		return fmt.Errorf("there are more %s than a request may have; split it", kind)
	}
	return nil
}

// parseDatum reads the message Datum. Spans of provenance are skipped.
func parseDatum(message []byte, left *Bounds) (d Datum, err error) {
	d.Inputs = map[string]Tensor{}
	err = eachField(message, func(f field) error {
		switch f.number {
		case 1:
			if err := take(&left.Chunks, "chunks"); err != nil {
				return err
			}
			c, err := parseChunk(f.bytes())
			d.Input.Chunks = append(d.Input.Chunks, c)
			return err
		case 2:
			if err := take(&left.Tensors, "tensors"); err != nil {
				return err
			}
			return parseTensorEntry(f, d.Inputs)
		}
		return nil
	})
	return d, err
}

// parseChunk reads the message Chunk.
func parseChunk(message []byte) (c Chunk, err error) {
	err = eachField(message, func(f field) error {
		switch f.number {
		case 1:
			c.Type = ChunkText
			return eachField(f.bytes(), func(f field) (err error) {
				if f.number == 1 {
					c.Tokens, err = ints(f.bytes())
				}
				return err
			})
		case 2:
			c.Type = "image"
		case 3:
			c.Type = "dmel"
		}
		return nil
	})
	return c, err
}

// appendDatum writes the message Datum.
func appendDatum(b []byte, d *Datum) []byte {
	for i := range d.Input.Chunks {
		b = appendBytes(b, 1, appendBytes(nil, 1, appendBytes(nil, 1, putInts(d.Input.Chunks[i].Tokens))))
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
func ParseForwardRequest(message []byte, bounds Bounds) (*ForwardRequest, error) {
	r, left := &ForwardRequest{}, &bounds
	err := eachField(message, func(f field) error {
		switch f.number {
		case 1:
			r.ModelID = f.text()
		case 2:
			r.SeqID = int(int32(f.integer()))
		case 3:
			if err := take(&left.Data, "data"); err != nil {
				return err
			}
			d, err := parseDatum(f.bytes(), left)
			r.Data = append(r.Data, d)
			return err
		case 4:
			r.Loss = f.text()
		case 5, 7:
			if err := take(&left.Options, "options of the loss"); err != nil {
				return err
			}
			return r.parseConfig(f)
		case 6:
			r.ForwardOnly = f.integer() != 0
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the body is no ForwardBackwardRequest: %w", err)
	}
	return r, nil
}

// parseConfig reads an option of the loss: of field 5, a number, or of field 7, a number or a text.
func (r *ForwardRequest) parseConfig(f field) error {
	var number *float64
	var text string
	key, err := f.entry(func(value field) error {
		if f.number == 5 {
			number = new(value.double())
			return nil
		}
		return eachField(value.bytes(), func(f field) error {
			switch f.number {
			case 1:
				number = new(f.double())
			case 2:
				text = f.text()
			}
			return nil
		})
	})
	if number != nil {
		r.setConfig(key, *number)
	} else {
		r.setText(key, text)
	}
	return err
}

func (r *ForwardRequest) setConfig(key string, x float64) {
	if r.Config == nil {
		r.Config = map[string]float64{}
	}
	r.Config[key] = x
}

func (r *ForwardRequest) setText(key, text string) {
	if r.Text == nil {
		r.Text = map[string]string{}
	}
	r.Text[key] = text
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
		switch value := value.(type) {
		case float64:
			r.setConfig(key, value)
		case string:
			r.setText(key, value)
		case nil:
		default:
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
