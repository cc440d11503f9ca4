package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tableOf is the table of lines, without the one that says what the columns are, cut into cells.
func tableOf(t *testing.T, lines ...string) (rows [][]string) {
	file := filepath.Join(t.TempDir(), "art-x.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	var out strings.Builder
	require.NoError(t, table(&out, []string{file}))
	for line := range strings.Lines(out.String()) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) > 1 && cells[0] != "shape" && cells[0] != "---" {
			rows = append(rows, cells)
		}
	}
	return rows
}

const (
	ofOurs = `{"who":"art","card":"NVIDIA H200","shape":"qwen2.5-7b","weights":"bfloat16","cache":"bfloat16",`
	ofPeer = `{"who":"transformers","card":"NVIDIA H200","shape":"qwen2.5-7b","weights":"bfloat16",`
)

// TestTable_Decode: rates are compared with generate and with the loop of the same batch, and with the bandwidth.
func TestTable_Decode(t *testing.T) {
	rows := tableOf(t,
		ofOurs+`"job":"decode","batch":1,"tokens":256,"steps":32,"tokens_per_s":100,"programs":9,"compile_s":60}`,
		ofPeer+`"job":"decode","how":"generate","batch":1,"tokens":256,"tokens_per_s":20}`,
		ofPeer+`"job":"decode","how":"loop","batch":1,"tokens":256,"tokens_per_s":40}`,
		ofPeer+`"job":"decode","how":"generate","batch":64,"tokens":256,"tokens_per_s":1}`,
		`half a li`,
	)
	require.Len(t, rows, 4)
	require.Equal(t, "decode, 32 a call", rows[0][1])
	require.Equal(t, "5 (its loop: 2.5)", rows[0][6])
	require.Equal(t, "1.42e+03 (29 %)", rows[0][8], "14.16 GB for each token, of 4,800 GB/s")
	require.Equal(t, "60 cold", rows[0][10])
	require.Equal(t, "decode, generate", rows[1][1])
	require.Empty(t, rows[1][6])
}

// TestTable_Train: the share of the peak counts attention; layers that are computed again and programs that were kept
// are marked.
func TestTable_Train(t *testing.T) {
	line := ofOurs + `"job":"train","device":"xla:cuda","batch":1,"tokens":16384,"tokens_per_s":7462,"recompute":true,` +
		`"programs":9,"kept_programs":9,"compile_s":3}`
	rows := tableOf(t, line, strings.Replace(line, "NVIDIA H200", "some other", 1),
		ofPeer+`"job":"train","batch":1,"tokens":16384,"tokens_per_s":3731,"recompute":true}`)
	require.Equal(t, "train, layers computed again", rows[0][1])
	require.Equal(t, "2", rows[0][6])
	require.Equal(t, "297 (30 %)", rows[0][7])
	require.Equal(t, "3 warm", rows[0][10])
	require.Equal(t, "297", rows[1][7], "of a GPU whose peak is not known")
	require.Empty(t, rows[1][6], "measured on another GPU")
}

// TestTable_Steps: a step is divided into rollouts and training, and its gap and cost are in a table of their own.
func TestTable_Steps(t *testing.T) {
	gap := ofOurs + `"job":"gap","device":"xla:cuda","devices":1,"batch":8,"prompt":32,"tokens":32,"tokens_per_s":64,` +
		`"median_s":4,"rollouts_s":3,"training_s":1,"gap":{"max":0.25,"mean":0.125,"tokens":256}}`
	slower := strings.NewReplacer(
		`"bfloat16"`, `"float32"`, `"median_s":4`, `"median_s":10`, "0.25", `"NaN"`,
	).Replace(gap)
	plain := strings.Replace(gap, "xla:cuda", "xla:cuda,flash_attention=false", 1)
	rows := tableOf(t, gap, slower, plain,
		ofOurs+`"job":"grpo","device":"xla:cuda","devices":2,"batch":64,"prompt":512,"tokens":512,"tokens_per_s":90,`+
			`"median_s":9,"rollouts_s":7,"training_s":2,"gap":{"max":0.25,"mean":0.125,"tokens":256}}`,
		ofPeer+`"job":"grpo","how":"generate","batch":64,"prompt":512,"tokens":512,"tokens_per_s":30,"median_s":27,`+
			`"rollouts_s":25,"training_s":2}`)
	require.Len(t, rows, 6)
	require.Equal(t, []string{"grpo, 2 devices", "64 x (512 + 512)"}, rows[0][1:3])
	require.Equal(t, "3", rows[0][6])
	require.Equal(t, "9 = 7 + 2", rows[0][9])
	require.Equal(t, "27 = 25 + 2", rows[1][9])
	require.Equal(t, []string{"0.25", "0.12", "256", "4 = 3 + 1", "1"}, rows[2][4:])
	require.Equal(t, []string{"NaN", "0.12", "256", "10 = 3 + 1", "2.5"}, rows[3][4:])
	require.Equal(t, "gap, flash_attention=false", rows[4][1])
}
