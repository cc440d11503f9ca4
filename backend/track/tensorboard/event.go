package tensorboard

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/protofield"
	"github.com/goart-dev/art/internal/track"
)

// The field numbers are those of event.proto, summary.proto and tensor.proto of TensorBoard 2.21.

// event is a record of an event file.
type event struct {
	wall   time.Time
	step   int
	start  bool // a session starts: readers forget what they have from step on
	values []value
}

// value is a field "value" of a Summary, without tag and length.
type value []byte

func (e event) encode() []byte {
	b := protofield.AppendDouble(nil, 1, seconds(e.wall))
	b = protofield.AppendVarint(b, 2, uint64(e.step))
	if e.start {
		b = protofield.AppendBytes(b, 7, protofield.AppendVarint(nil, 1, 1)) // session_log: START
	}
	if len(e.values) > 0 {
		var summary []byte
		for _, v := range e.values {
			summary = protofield.AppendBytes(summary, 1, v)
		}
		b = protofield.AppendBytes(b, 5, summary)
	}
	return b
}

// fileVersion is the first record of a file.
func fileVersion(now time.Time) []byte {
	return protofield.AppendBytes(protofield.AppendDouble(nil, 1, seconds(now)), 3, []byte("brain.Event:2"))
}

// scalars returns an event for each row.
func scalars(rows []track.Row) []event {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b track.Row) int { return cmp.Compare(a.Step, b.Step) })
	events := make([]event, len(rows))
	for i, row := range rows {
		events[i] = event{wall: row.Time, step: row.Step}
		for _, key := range slices.Sorted(maps.Keys(row.Metrics)) {
			v := protofield.AppendBytes(nil, 1, []byte(key))
			v = protofield.AppendFloat(v, 2, float32(row.Metrics[key])) // simple_value
			events[i].values = append(events[i].values, v)
		}
	}
	return events
}

// textValue returns a value of the plugin "text": a vector of Markdown texts.
func textValue(tag string, texts []string) value {
	shape := protofield.AppendBytes(nil, 2, protofield.AppendVarint(nil, 1, uint64(len(texts))))
	tensor := protofield.AppendBytes(protofield.AppendVarint(nil, 1, 7), 2, shape) // of strings
	for _, text := range texts {
		tensor = protofield.AppendBytes(tensor, 8, []byte(text))
	}
	return pluginValue(tag, "text", nil, tensor)
}

// pluginValue returns a value that a plugin of TensorBoard shows.
func pluginValue(tag, plugin string, content, tensor []byte) value {
	data := protofield.AppendBytes(nil, 1, []byte(plugin))
	if content != nil {
		data = protofield.AppendBytes(data, 2, content)
	}
	b := protofield.AppendBytes(nil, 1, []byte(tag))
	b = protofield.AppendBytes(b, 9, protofield.AppendBytes(nil, 1, data))
	return protofield.AppendBytes(b, 8, tensor)
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// numBuckets is the number of buckets of a histogram, of equal width.
const numBuckets = 30

// histograms returns the distributions over the trajectories: rewards, advantages, and the numbers of sampled tokens of
// a trajectory and of a reply; and that of the importance ratios of tokens. Those without a finite value are left out.
func histograms(g track.Groups) []value {
	var rewards, advantages, tokens, replies []float64
	for i, group := range g.Groups {
		if group == nil {
			continue
		}
		for j, t := range group.Trajectories {
			if t == nil {
				continue
			}
			rewards = append(rewards, t.Reward)
			if i < len(g.Advantages) && j < len(g.Advantages[i]) {
				advantages = append(advantages, g.Advantages[i][j])
			}
			sum := 0
			for _, s := range t.Samples() {
				replies = append(replies, float64(len(s.IDs)))
				sum += len(s.IDs)
			}
			if sum > 0 {
				tokens = append(tokens, float64(sum))
			}
		}
	}
	var ratios []float64
	for _, x := range g.Ratios {
		ratios = append(ratios, float64(x))
	}
	var out []value
	for _, h := range []struct {
		name string
		data []float64
	}{
		{"rewards", rewards}, {"advantages", advantages}, {"importance_ratios", ratios}, {"tokens_of_trajectory", tokens},
		{"tokens_of_reply", replies},
	} {
		data := slices.DeleteFunc(h.data, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
		if len(data) > 0 {
			v := protofield.AppendBytes(nil, 1, []byte(g.Split+"/"+h.name))
			out = append(out, protofield.AppendBytes(v, 5, histogram(data)))
		}
	}
	return out
}

// histogram returns a HistogramProto of finite numbers, at least one.
func histogram(data []float64) []byte {
	low, high := slices.Min(data), slices.Max(data)
	var sum, squares float64
	counts := make([]float64, numBuckets)
	for _, x := range data {
		sum, squares = sum+x, squares+x*x
		bucket := 0
		if high > low {
			bucket = min(int((x-low)/(high-low)*numBuckets), numBuckets-1)
		}
		counts[bucket]++
	}
	limits := make([]float64, numBuckets)
	for i := range limits {
		limits[i] = low + (high-low)*float64(i+1)/numBuckets
	}
	if high == low { // one value: a bucket around it
		limits, counts = []float64{low + math.Max(math.Abs(low), 1)*1e-9}, []float64{float64(len(data))}
	}
	var b []byte
	for i, x := range []float64{low, high, float64(len(data)), sum, squares} {
		b = protofield.AppendDouble(b, protofield.Number(i+1), x)
	}
	return protofield.AppendDoubles(protofield.AppendDoubles(b, 6, limits), 7, counts)
}

// The field numbers are those of plugin_data.proto of the plugin "hparams".

// sessionStart tells the hyperparameters of a run.
func sessionStart(now time.Time, config map[string]any) value {
	var info []byte
	for _, key := range slices.Sorted(maps.Keys(config)) {
		entry := protofield.AppendBytes(protofield.AppendBytes(nil, 1, []byte(key)), 2, protoValue(config[key]))
		info = protofield.AppendBytes(info, 1, entry)
	}
	info = protofield.AppendDouble(info, 5, seconds(now))
	return hparams("_hparams_/session_start_info", 3, info)
}

// sessionEnd tells how a run ended.
func sessionEnd(now time.Time, failed bool) value {
	status := uint64(1)
	if failed {
		status = 2
	}
	info := protofield.AppendDouble(protofield.AppendVarint(nil, 1, status), 2, seconds(now))
	return hparams("_hparams_/session_end_info", 4, info)
}

// hparams returns a value with a field of HParamsPluginData. Its tensor is an empty vector of floats.
func hparams(tag string, field protofield.Number, info []byte) value {
	empty := protofield.AppendBytes(protofield.AppendVarint(nil, 1, 1), 2, protofield.AppendBytes(nil, 2, nil))
	return pluginValue(tag, "hparams", protofield.AppendBytes(protofield.AppendVarint(nil, 1, 0), field, info), empty)
}

// protoValue returns v as a google.protobuf.Value: a number, a bool, or text.
func protoValue(v any) []byte {
	switch v := v.(type) {
	case bool:
		return protofield.AppendVarint(nil, 4, protowire.EncodeBool(v))
	case int:
		return protofield.AppendDouble(nil, 2, float64(v))
	case int64:
		return protofield.AppendDouble(nil, 2, float64(v))
	case uint64:
		return protofield.AppendDouble(nil, 2, float64(v))
	case float64:
		return protofield.AppendDouble(nil, 2, v)
	}
	return protofield.AppendBytes(nil, 3, fmt.Append(nil, v))
}

// maxText bounds the text of a trajectory, in bytes.
const maxText = 16 << 10

// texts returns up to n trajectories as Markdown: the first of each group, then the second, so that several groups are
// seen.
func texts(g track.Groups, n int) []string {
	var out []string
	for attempt, more := 0, true; more && len(out) < n; attempt++ {
		more = false
		for i, group := range g.Groups {
			if group == nil || attempt >= len(group.Trajectories) || len(out) == n {
				continue
			}
			more = true
			if t := group.Trajectories[attempt]; t != nil {
				out = append(out, markdown(t, i, attempt))
			}
		}
	}
	return out
}

// markdown writes a conversation. What was said is indented: a block of code, in which nothing is Markdown.
func markdown(t *art.Trajectory, group, attempt int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**group %d, attempt %d, reward %.4g**\n", group, attempt, t.Reward)
	for _, h := range t.Histories() {
		for i := range h.Messages {
			m := &h.Messages[i]
			fmt.Fprintf(&b, "\n%s\n\n", m.Role)
			indent(&b, m.Reasoning)
			indent(&b, m.Content)
			for _, call := range m.ToolCalls {
				indent(&b, call.Name+" "+call.Arguments)
			}
			if b.Len() > maxText {
				return track.Shorten(b.String(), maxText)
			}
		}
	}
	return b.String()
}

func indent(b *strings.Builder, text string) {
	if text == "" {
		return
	}
	for line := range strings.Lines(strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")) {
		b.WriteString("    " + strings.TrimRight(line, "\r\n") + "\n")
	}
}
