package tinker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// The operations of training, which are executed in the order of their seq_id.
const (
	opCreate   = "create_model"
	opForward  = "forward"
	opBackward = "forward_backward"
	opOptim    = "optim_step"
	opSave     = "save_weights"
	opSampler  = "save_weights_for_sampler"
	opExternal = "save_weights_external"
	opLoad     = "load_weights"
)

// call is one of them, as it came.
type call struct {
	op, media string
	body      []byte
	forward   *tinkerwire.ForwardRequest // of forward passes
	small     *tinkerwire.Request        // of all others
}

// parseCall reads the body of an operation.
func parseCall(op, media string, body []byte) (*call, error) {
	c := &call{op: op, media: media, body: body}
	var err error
	switch op {
	case opForward, opBackward:
		c.forward = &tinkerwire.ForwardRequest{}
		if media == tinkerwire.ProtoType {
			c.forward, err = tinkerwire.ParseForwardRequest(body)
		} else {
			err = json.Unmarshal(body, c.forward)
		}
		if err == nil && c.forward.ForwardOnly {
			c.op = opForward
		}
	default:
		c.small = &tinkerwire.Request{}
		err = json.Unmarshal(body, c.small)
	}
	if err != nil {
		return nil, failf(http.StatusBadRequest, "the body of %s cannot be read: %v", op, err)
	}
	return c, nil
}

// run and seq say where the call belongs.
func (c *call) run() string {
	if c.forward != nil {
		return c.forward.ModelID
	}
	return c.small.ModelID
}

func (c *call) seq() int {
	if c.forward != nil {
		return c.forward.SeqID
	}
	return c.small.SeqID
}

// changes reports whether the call changes the training state without storing it.
func (c *call) changes() bool { return c.op == opCreate || c.op == opBackward || c.op == opLoad }

// encode is the body of a record of the journal.
func (c *call) encode() []byte {
	return bytes.Join([][]byte{[]byte(c.op), []byte(c.media), c.body}, []byte{0})
}

// decodeCall is the reverse.
func decodeCall(body []byte) (*call, error) {
	parts := bytes.SplitN(body, []byte{0}, 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("a record of a request has %d parts", len(parts))
	}
	return parseCall(string(parts[0]), string(parts[1]), parts[2])
}
