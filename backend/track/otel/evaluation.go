package otel

import (
	"encoding/hex"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/goart-dev/art/internal/track"
)

// evaluation is a number that says how good a rollout was.
type evaluation struct {
	name        string
	value       float64
	explanation string // content
}

// evaluationsOf returns the reward, and the score of a judge of package ruler with its explanations. NaN is left out.
func evaluationsOf(r *track.Rollout) []evaluation {
	if r.End == nil || r.End.Trajectory == nil {
		return nil
	}
	t := r.End.Trajectory
	out := []evaluation{{name: "reward", value: t.Reward}}
	if score, ok := t.Metrics["ruler_score"]; ok {
		var lines []string
		for _, line := range t.Logs {
			if strings.HasPrefix(line, "ruler (") {
				lines = append(lines, line)
			}
		}
		out = append(out, evaluation{"ruler", score, strings.Join(lines, "\n")})
	}
	finite := out[:0]
	for _, e := range out {
		if !math.IsNaN(e.value) && !math.IsInf(e.value, 0) {
			finite = append(finite, e)
		}
	}
	return finite
}

func (e evaluation) attributes(content bool) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("gen_ai.evaluation.name", e.name),
		attribute.Float64("gen_ai.evaluation.score.value", e.value),
	}
	if content && e.explanation != "" {
		out = append(out, attribute.String("gen_ai.evaluation.explanation", e.explanation))
	}
	return out
}

func (e evaluation) score(at identity, end time.Time, content bool) Score {
	s := Score{
		Trace: hex.EncodeToString(at.trace[:]), Span: hex.EncodeToString(at.span[:]), Name: e.name, Value: e.value, Time: end,
	}
	if content {
		s.Explanation = e.explanation
	}
	return s
}
