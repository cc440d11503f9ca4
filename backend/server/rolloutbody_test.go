package server

import (
	"math"
	"testing"
)

// FuzzRolloutBodies checks that what is accepted can be stored: labels are scalars, a rollout has a finite reward or a
// failure, and a size belongs to a group.
func FuzzRolloutBodies(f *testing.F) {
	for _, body := range []string{
		`{"model": "m", "group": "g", "group_size": 2, "scenario": "s", "metadata": {"a": 1, "b": 1.5, "c": null, "d": "x"}}`,
		`{"reward": 1e3, "metrics": {"won": -1}, "metadata": {"a": true}, "logs": ["x"]}`,
		`{"failure": "why"}`, `{"reward": null}`, `{"metadata": {"a": 99999999999999999999}}`, `[]`, `null`, `{}{}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if req, err := decodeOpen(body); err == nil {
			if req.Model == "" || req.GroupSize < 0 || req.GroupSize > 0 && req.Group == "" || len(req.Group) > maxGroupName {
				t.Errorf("accepted %+v", req)
			}
			checkLabels(t, req.Metadata)
		}
		if req, err := decodeClose(body); err == nil {
			if (req.Reward != nil) == (req.Failure != "") || req.Reward != nil && math.IsInf(*req.Reward, 0) {
				t.Errorf("accepted %+v", req)
			}
			checkLabels(t, req.Metadata)
		}
	})
}

// checkLabels checks that values have one of the types that [art.Trajectory] allows.
func checkLabels(t *testing.T, l labels) {
	for key, value := range l.values() {
		switch value.(type) {
		case nil, string, bool, int, float64:
		default:
			t.Errorf("label %q has type %T", key, value)
		}
	}
}
