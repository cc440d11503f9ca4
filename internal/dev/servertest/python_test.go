package servertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestRollouts_Python plays rollouts with the Python clients that the interpreter ART_PYTHON has:
//
//	ART_PYTHON=python go test ./internal/dev/servertest -run Python -v
//
// Requests that fail, are cut and are sent again leave every sampled token in exactly one sample.
func TestRollouts_Python(t *testing.T) {
	python := os.Getenv("ART_PYTHON")
	if python == "" {
		t.Skip("ART_PYTHON is not set")
	}
	for _, client := range []string{"chat", "responses", "messages", "langchain"} {
		t.Run(client, func(t *testing.T) {
			rollouts, turns := Settings(t)
			s := New(t, uint64(time.Now().UnixNano()))
			c := exec.CommandContext(t.Context(), python, "../conformance/rollouts.py", s.URL, Key, client,
				fmt.Sprint(rollouts), fmt.Sprint(turns))
			var problems bytes.Buffer
			c.Stderr = &problems
			out, err := c.Output()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 3 {
				t.Skipf("the client is not installed: %s", problems.String())
			}
			if err != nil {
				t.Fatalf("%v: %s", err, problems.String())
			}
			played := 0
			for d := json.NewDecoder(bytes.NewReader(out)); d.More(); played++ {
				var one struct {
					ID       string
					Received []string
				}
				if err := d.Decode(&one); err != nil {
					t.Fatal(err)
				}
				s.check(one.ID, one.Received)
			}
			s.checkAll(played)
			if played != rollouts {
				t.Errorf("%d rollouts were played, want %d", played, rollouts)
			}
		})
	}
}
