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

// isForward reports whether an operation has data, and so may be large.
func isForward(op string) bool { return op == opForward || op == opBackward }

// call is one of them, as it came. While it waits it holds its body once, and not what the body decodes to.
type call struct {
	op, media string
	record    []byte              // the body of its record in the journal
	run       string              // where it belongs, "" if it makes a run
	seq       int                 // its place there
	small     *tinkerwire.Request // nil for forward passes
}

// parseCall reads the body of an operation.
func parseCall(op, media string, body []byte, limits *Limits) (*call, error) {
	c := &call{op: op, media: media}
	if isForward(op) {
		req, err := parseForward(op, media, body, limits)
		if err != nil {
			return nil, err
		}
		if req.ForwardOnly {
			c.op = opForward
		}
		c.run, c.seq = req.ModelID, req.SeqID
	} else if err := checkCounts(smallCounts, body); err != nil {
		return nil, err
	} else if err := c.parseSmall(body); err != nil {
		return nil, err
	}
	c.record = bytes.Join([][]byte{[]byte(c.op), []byte(media), body}, []byte{0})
	return c, nil
}

// parseForward reads the body of a forward pass.
func parseForward(op, media string, body []byte, limits *Limits) (req *tinkerwire.ForwardRequest, err error) {
	if media == tinkerwire.ProtoType {
		req, err = tinkerwire.ParseForwardRequest(body, limits.bounds())
	} else if err = checkCounts(limits.forwardCounts(), body); err == nil {
		req = &tinkerwire.ForwardRequest{}
		err = json.Unmarshal(body, req)
	}
	return req, unreadable(op, err)
}

// unreadable is the error of a body that cannot be read.
func unreadable(op string, err error) error {
	if err == nil {
		return nil
	}
	return failf(http.StatusBadRequest, "the body of %s cannot be read: %v", op, err)
}

// parseSmall reads the body of another operation.
func (c *call) parseSmall(body []byte) error {
	c.small = &tinkerwire.Request{}
	if err := unreadable(c.op, json.Unmarshal(body, c.small)); err != nil {
		return err
	}
	c.run, c.seq = c.small.ModelID, c.small.SeqID
	return nil
}

// forward reads the body again, when it is its turn.
func (c *call) forward(limits *Limits) (*tinkerwire.ForwardRequest, error) {
	return parseForward(c.op, c.media, c.record[len(c.op)+len(c.media)+2:], limits)
}

// changes reports whether the call changes the training state without storing it.
func (c *call) changes() bool { return c.op == opCreate || c.op == opBackward || c.op == opLoad }

// decodeCall reads the body of a record of the journal.
func decodeCall(record []byte) (*call, error) {
	parts := bytes.SplitN(record, []byte{0}, 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("a record of a request has %d parts", len(parts))
	}
	c := &call{op: string(parts[0]), media: string(parts[1]), record: record}
	if isForward(c.op) {
		return c, nil
	}
	return c, c.parseSmall(parts[2])
}
