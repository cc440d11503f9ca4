package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// table prints the lines of files, ours and those of peers.py, as a table of Markdown.
func table(w io.Writer, files []string) error {
	fmt.Fprintln(w,
		"| shape | job | batch x tokens | weights | who | tokens/s | TFLOP/s | GB/s of weights | first run, s |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	for _, name := range files {
		if err := rows(w, name); err != nil {
			return err
		}
	}
	return nil
}

func rows(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintf(os.Stderr, "gpu: %s:%d: left out: %v\n", name, n, err) // half a line of a job that was killed
			continue
		}
		if r.Rate == 0 {
			continue // of parity, or versions
		}
		steps := ""
		if r.Steps > 0 {
			steps = fmt.Sprintf(", %d a call", r.Steps)
		}
		fmt.Fprintf(w, "| %s | %s%s | %d x %d | %s | %s | %.4g | %.3g | %.4g | %.3g |\n",
			r.Shape, r.Job, steps, r.Batch, r.Tokens, r.Weights, r.Who, r.Rate, r.TFLOPs, r.GBs, r.First)
	}
	return lines.Err()
}
