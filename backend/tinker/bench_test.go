package tinker_test

import (
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/backend/loop"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
)

// BenchmarkForward sends 8 MB of data through the protocol, on loopback, to a model that computes nothing: what is
// left is encoding, decoding and the transport, of both sides. us/token is to be compared with what training takes for
// a token.
func BenchmarkForward(b *testing.B) {
	const (
		length = 1024
		data   = 420 // of some 19 bytes a token in protobuf
		seed   = 1
	)
	rng := rand.New(rand.NewPCG(seed, 0))
	list := make([]loop.Datum, data)
	for i := range list {
		d := &list[i]
		for range length {
			d.Input = append(d.Input, int32(rng.IntN(128)))
			d.Targets = append(d.Targets, int32(rng.IntN(128)))
			d.Logprobs = append(d.Logprobs, -rng.Float32())
			d.Advantages = append(d.Advantages, rng.Float32()-0.5)
		}
	}
	for name, json := range map[string]bool{"protobuf": false, "JSON": true} {
		b.Run(name, func(b *testing.B) {
			_, m := open(b, client.Options{
				BaseURL: serve(b, nil), Key: "tml-secret", Tokenizer: words(b), Dir: b.TempDir(), JSON: json,
			})
			for b.Loop() {
				if _, err := loop.Forward(b.Context(), m, list, credit.CISPO, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*data*length), "us/token")
		})
	}
}
