package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/schollz/progressbar/v3"

	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/hub"
)

func init() {
	verbs["model pull"] = verb{
		summary: "fetch a model from the hub",
		args:    "ORG/NAME[@revision]",
		text: `
Fetches a model from the Hugging Face hub into the cache that Python's huggingface_hub uses, and
prints its folder: configuration, tokenizer, chat template, and weights as safetensors. The
configuration comes first: of a model that cannot be used here nothing else is fetched. Files in the
cache are not fetched again, an interrupted download is resumed, and every file is checked against
the hub's checksum. The revision is a branch, a tag or a commit; default main.

environment:
  HF_ENDPOINT        the hub; https://huggingface.co when empty
  HF_TOKEN           token for private and gated models; else that in the file HF_TOKEN_PATH, or in
                     HF_HOME/token
  HF_HUB_CACHE       the cache; HF_HOME/hub when empty
  HF_HOME            ~/.cache/huggingface when empty
  HF_HUB_OFFLINE     1: use the cache only`,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print one JSON object")
			return func(args []string, stdout, stderr io.Writer) error {
				if len(args) != 1 {
					return badUsage("want one model: art model pull [--json] ORG/NAME[@revision]")
				}
				return pull(args[0], *asJSON, stdout, stderr)
			}
		},
	}
}

// pulled is what model pull prints.
type pulled struct {
	Name     string       `json:"name"`
	Revision string       `json:"revision"`
	Commit   string       `json:"commit"`
	Folder   string       `json:"folder"`
	Bytes    int64        `json:"bytes"`
	Files    []pulledFile `json:"files"`
}

type pulledFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// pull fetches a model and prints where it is.
func pull(name string, asJSON bool, stdout, stderr io.Writer) error {
	if _, err := hub.ParseName(name); err != nil {
		return badUsage("%v", err)
	}
	terminal := newProgress(stderr)
	terminal.say("asking the hub for %s", name)
	bar := downloadBar(terminal.w, name)
	s, err := hub.Pull(context.Background(), name, &hub.Options{
		Check: model.CheckConfig,
		Progress: func(p hub.Progress) {
			bar.ChangeMax64(p.Total)
			_ = bar.Set64(p.Done) // failing to draw is no reason to stop
		},
		Retry: func(r hub.Retry) {
			terminal.say("")
			fmt.Fprintf(stderr, "art: model pull: try %d of %d: %v; the next in %v\n", r.Try, r.Tries, r.Err, r.Pause)
		},
	})
	terminal.say("")
	_ = bar.Finish()
	if err != nil {
		return err
	}
	if !asJSON {
		return write(stdout, s.Dir+"\n")
	}
	out, err := describe(s)
	if err != nil {
		return err
	}
	return writeJSON(stdout, out)
}

// downloadBar shows the progress of a download.
func downloadBar(w io.Writer, title string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(title),
		progressbar.OptionSetVisibility(w != io.Discard),
		progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(20),
	)
}

// describe lists the files of a snapshot with their sizes.
func describe(s *hub.Snapshot) (pulled, error) {
	out := pulled{Name: s.Name.Repo, Revision: s.Name.Revision, Commit: s.Commit, Folder: s.Dir}
	for _, name := range s.Files {
		info, err := os.Stat(filepath.Join(s.Dir, name))
		if err != nil {
			return out, fmt.Errorf("the file has just been fetched: %w", err)
		}
		out.Files = append(out.Files, pulledFile{name, info.Size()})
		out.Bytes += info.Size()
	}
	return out, nil
}
