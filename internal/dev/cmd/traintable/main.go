// Command traintable measures training steps over lengths of sequences and sizes of groups, as a Markdown table and two
// plots:
//
//	go build -o /tmp/art ./cmd/art
//	go run ./internal/dev/cmd/traintable -art /tmp/art -out docs/images
//
// Half of a sequence is the prompt that the answers of its group share. Each measurement is a process of its own, so
// that its memory is its own too: art debug bench train --only-shared. A star marks steps that computed layers again
// for their gradient, because their results would not have fit.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/internal/dev/bench/trainbench"
)

func main() {
	log.SetFlags(0)
	var s sweep
	lengths := flag.String("lengths", "128,512,2048,8192", "tokens of a sequence, with commas")
	sizes := flag.String("sizes", "2,8,32", "answers of a group, with commas")
	out := flag.String("out", "", "`folder` for train-speed.svg and train-memory.svg; empty: no plots")
	flag.StringVar(&s.art, "art", "art", "`path` of the command art")
	flag.StringVar(&s.shape, "shape", "smollm2-135m", "`name` of the model's shape")
	flag.IntVar(&s.most, "most", 150_000, "`tokens` that a step computes at most; larger ones are left out")
	flag.Parse()
	var err error
	if s.lengths, err = numbers(*lengths); err == nil {
		s.sizes, err = numbers(*sizes)
	}
	if err != nil {
		log.Fatal("traintable: ", err)
	}
	cells, err := s.run(os.Stderr)
	if err == nil {
		err = s.write(os.Stdout, cells)
	}
	if err == nil && *out != "" {
		err = s.plot(*out, cells)
	}
	if err != nil {
		log.Fatal("traintable: ", err)
	}
}

func numbers(list string) ([]int, error) {
	var out []int
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 {
			return nil, fmt.Errorf("%q in %s: want numbers from 2 on", text, list)
		}
		out = append(out, n)
	}
	return out, nil
}

// sweep is what is measured.
type sweep struct {
	art, shape     string
	lengths, sizes []int
	most           int
}

// cell is one measurement.
type cell struct {
	length, size int
	rate         float64 // tokens of all sequences a second
	bytes        int64   // the most that the process had in memory, weights included
	again        bool    // layers were computed again, for want of memory
}

// run measures, small steps first.
func (s *sweep) run(progress io.Writer) ([]cell, error) {
	var cells []cell
	for _, size := range s.sizes {
		for _, length := range s.lengths {
			if length/2*(1+size) > s.most {
				continue
			}
			fmt.Fprintf(progress, "%d answers, %d tokens\n", size, length)
			c, err := s.measure(length, size)
			if err != nil {
				return nil, err
			}
			cells = append(cells, c)
		}
	}
	return cells, nil
}

// longStep is the least length of sequences whose first step is measured: it takes a minute or more, and compiling less
// than a second.
const longStep = 8192

// measure runs one process.
func (s *sweep) measure(length, size int) (cell, error) {
	half := strconv.Itoa(length / 2)
	command := exec.Command(s.art, "debug", "bench", "--json", "--only-shared", "--pairs", "1", "--shape", s.shape,
		"--shared-prompt", half, "--answer", half, "--group-size", strconv.Itoa(size),
		fmt.Sprintf("--cold=%t", length >= longStep), "train")
	text, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return cell{}, fmt.Errorf("%d answers of %d tokens: %w", size, length, err)
	}
	var result struct{ Train trainbench.Result }
	if err := json.Unmarshal(text, &result); err != nil {
		return cell{}, err
	}
	t := result.Train.Shared
	return cell{length: length, size: size, rate: t.Rate, bytes: peak(command.ProcessState),
		again: t.Recompute}, nil
}

// write prints the table: a row for each length, a column for each size.
func (s *sweep) write(w io.Writer, cells []cell) error {
	head, line := "| tokens |", "|---|"
	for _, size := range s.sizes {
		head += fmt.Sprintf(" %d answers |", size)
		line += "---|"
	}
	rows := []string{head, line}
	for _, length := range s.lengths {
		row := fmt.Sprintf("| %d |", length)
		for _, size := range s.sizes {
			row += " " + entry(cells, length, size) + " |"
		}
		rows = append(rows, row)
	}
	_, err := fmt.Fprintln(w, strings.Join(rows, "\n"))
	return err
}

func entry(cells []cell, length, size int) string {
	for _, c := range cells {
		if c.length == length && c.size == size {
			text := fmt.Sprintf("%.0f, %.1f GB", c.rate, float64(c.bytes)/1e9)
			if c.again {
				text += " *"
			}
			return text
		}
	}
	return ""
}

// plot draws speed and memory over length.
func (s *sweep) plot(dir string, cells []cell) error {
	draw := func(name, y string, value func(cell) float64) error {
		chart := &plot.Chart{Title: "Training step, " + s.shape, X: "tokens of a sequence", Y: y}
		for _, size := range s.sizes {
			line := plot.Series{Name: fmt.Sprintf("%d answers", size)}
			for _, c := range cells {
				if c.size == size {
					line.Points = append(line.Points, plot.Point{Step: c.length, Value: value(c)})
				}
			}
			chart.Series = append(chart.Series, line)
		}
		return plot.Save(filepath.Join(dir, name), chart)
	}
	return errors.Join(
		draw("train-speed.svg", "tokens/s", func(c cell) float64 { return c.rate }),
		draw("train-memory.svg", "memory (GB)", func(c cell) float64 { return float64(c.bytes) / 1e9 }))
}
