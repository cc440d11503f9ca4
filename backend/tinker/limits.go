package tinker

import (
	"cmp"
	"context"
	"errors"

	"math"
	"net/http"

	"strings"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// limits are what a service says of itself when a session begins.
type limits struct {
	Datums int `json:"fwdbwd_max_chunk_len"`         // of a request
	Bytes  int `json:"fwdbwd_max_chunk_bytes_count"` // of a request, about
	// PolicyWeights says that policy losses take weights. It is our own server's: others have them in advantages.
	PolicyWeights bool `json:"policy_weights"`
	// NoTarget says that a target may be none, as our own server does.
	NoTarget bool `json:"no_target"`

	contexts map[string]int // most tokens of a sequence, by base model
}

// The limits of the SDKs, for services that do not tell.
const (
	defaultDatums = 1024
	defaultBytes  = 5_000_000
)

// ask reads the limits. Older services have no such routes.
func (l *limits) ask(ctx context.Context, b *Backend) error {
	req := request{SDKVersion: sdkVersion, Extensions: []string{tinkerwire.PolicyWeights, tinkerwire.NoTarget}}
	if err := b.optional(b.post(ctx, "client/config", req, l)); err != nil {
		return err
	}
	l.Datums, l.Bytes = cmp.Or(max(l.Datums, 0), defaultDatums), cmp.Or(max(l.Bytes, 0), defaultBytes)
	var models tinkerwire.Capabilities
	a, err := b.call(ctx, http.MethodGet, "get_server_capabilities", nil)
	if err == nil {
		err = b.read("get_server_capabilities", a, &models)
	}
	if err = b.optional(err); err != nil {
		return err
	}
	l.contexts = map[string]int{}
	for _, m := range models.Models {
		l.contexts[m.Name] = m.MaxContext
	}
	return nil
}

// optional drops the error of a route that does not exist.
func (b *Backend) optional(err error) error {
	var s *statusError
	if errors.As(err, &s) && (s.status == http.StatusNotFound || s.status == http.StatusMethodNotAllowed) {
		return nil
	}
	return err
}

// seed writes a seed. Our server takes all bits; SkyRL's takes 31.
func (l *limits) seed(x uint64) int64 {
	if l.PolicyWeights || x <= math.MaxInt32 {
		return int64(x)
	}
	return int64((x ^ x>>32) & math.MaxInt32)
}

// context is the greatest number of tokens that a base model reads.
func (b *Backend) context(base string) int {
	if n := b.limits.contexts[base]; n > 0 {
		return n
	}
	return math.MaxInt
}

// chunk returns the end of the data of one request, which has at least one datum.
func (l *limits) chunk(data []tinkerwire.Datum, from int) (to int) {
	size := 0
	for to = from; to < len(data) && to-from < l.Datums; to++ {
		size += data[to].Size()
		if size > l.Bytes && to > from {
			break
		}
	}
	return to
}

// mergeMetrics adds the metrics of a request over n of the first total data, by the reduction in their names.
func mergeMetrics(all, part map[string]float64, n, total int) {
	for name, x := range part {
		had, ok := all[name]
		_, reduction, _ := strings.Cut(name, ":")
		switch {
		case !ok:
			all[name] = x
		case reduction == "sum":
			all[name] = had + x
		case reduction == "min":
			all[name] = min(had, x)
		case reduction == "max":
			all[name] = max(had, x)
		case reduction == "mean":
			all[name] = had + (x-had)*float64(n)/float64(total)
		default:
			delete(all, name) // it cannot be merged
		}
	}
}
