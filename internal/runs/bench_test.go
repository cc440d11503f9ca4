package runs

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// manyTrajectories makes groups of eight trajectories of some turns with words and samples, and returns the bytes of
// their messages as JSON and of their ids and logprobs, four each: the raw data.
func manyTrajectories(n int) (groups []*art.TrajectoryGroup, raw int64) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the mail says that a meeting about budget plans moves to friday because nobody has time")
	text := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[rng.IntN(len(words))]
		}
		return strings.Join(out, " ")
	}
	for i := range n {
		if i%8 == 0 {
			groups = append(groups, &art.TrajectoryGroup{})
		}
		t := &art.Trajectory{Reward: rng.Float64(), Metrics: map[string]float64{"turns": 3}}
		t.Messages = []art.Message{art.System("You answer questions about mail.")}
		for range 3 {
			s := &art.Sample{Settings: art.Sampling{Temperature: 1, TopP: 1}, Finish: art.FinishStop}
			for range 60 {
				s.IDs, s.Logprobs = append(s.IDs, int32(rng.IntN(150_000))), append(s.Logprobs, -rng.Float32())
			}
			for range 200 {
				s.PromptIDs = append(s.PromptIDs, int32(rng.IntN(150_000)))
			}
			reply := art.Assistant(text(40))
			t.Messages = append(t.Messages, art.User(text(60)), reply)
			content, err := json.Marshal(t.Messages[len(t.Messages)-2:])
			if err != nil {
				panic(err)
			}
			t.Messages[len(t.Messages)-1].Sample = s
			raw += int64(len(content) + 4*(2*len(s.IDs)+len(s.PromptIDs)))
		}
		groups[len(groups)-1].Trajectories = append(groups[len(groups)-1].Trajectories, t)
	}
	return groups, raw
}

// BenchmarkTrajectories writes and reads 100,000 trajectories in files of 2,000; MB are of raw data. One core:
//
//	GOMAXPROCS=1 go test ./internal/runs -run - -bench Trajectories -benchtime 1x
func BenchmarkTrajectories(b *testing.B) {
	const files, each = 50, 2000
	groups, raw := manyTrajectories(each)
	r, err := Open(b.TempDir(), "p", "m", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	if err := r.WriteModel(map[string]string{"name": "m"}); err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(files * raw)
		for b.Loop() {
			for i := range files {
				if err := r.WriteTrajectories(fmt.Sprint("split", i), 0, groups); err != nil {
					b.Fatal(err)
				}
				groups[0].Trajectories[0].Reward++ // equal content is not written again
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(files * raw)
		for b.Loop() {
			for i := range files {
				if _, err := r.ReadTrajectories(fmt.Sprint("split", i), 0); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkHistory opens a run with 10,000 rows.
func BenchmarkHistory(b *testing.B) {
	root := b.TempDir()
	r, err := Open(root, "p", "m", nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.WriteModel(map[string]string{"name": "m"}); err != nil {
		b.Fatal(err)
	}
	rows := make([]historyRow, 10_000)
	for i := range rows {
		rows[i].Split, rows[i].Metrics = fmt.Sprint("s", i), map[string]float64{}
		for j := range 30 {
			rows[i].Metrics[fmt.Sprintf("section/metric_%d", j)] = float64(i*j) / 7
		}
		if rows[i].line, err = encodeRow(rows[i], r.now()); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.rewriteHistory(rows); err != nil {
		b.Fatal(err)
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := Open(root, "p", "m", nil)
		if err != nil {
			b.Fatal(err)
		}
		if history, err := r.History(); err != nil || len(history) != len(rows) {
			b.Fatal(len(history), err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
