package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/model/hub"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/openai"
)

func init() {
	verbs["debug tokenize"] = verb{
		summary: "encode text as token ids",
		args:    "MODEL [TEXT...]",
		runs:    true,
		text: `Prints the ids of a text, each with its token as the vocabulary spells it and its range of bytes in
the text.

` + vocabularies + `

The text is the arguments, joined by spaces; without any, the file of --file; without that, the
input.`,
		define: func(flags *flag.FlagSet) action {
			var o tokenizeOptions
			flags.StringVar(&o.file, "file", "", "read the text from a `file`; - is standard input")
			flags.BoolVar(&o.special, "special", false, "add the tokens that the model puts around a text")
			flags.BoolVar(&o.ordinary, "ordinary", false, "treat special tokens in the text as ordinary text")
			flags.BoolVar(&o.json, "json", false, "print one JSON object")
			return o.run
		},
	}
}

// tokenizeOptions are the flags of the verb.
type tokenizeOptions struct {
	file                    string
	special, ordinary, json bool
}

func (o *tokenizeOptions) run(args []string, stdout, _ io.Writer) error {
	switch {
	case len(args) == 0:
		return badUsage("name a model; see art help debug tokenize")
	case o.special && o.ordinary:
		return badUsage("--special and --ordinary exclude one another")
	case o.file != "" && len(args) > 1:
		return badUsage("give a text or --file, not both")
	}
	tok, err := openTokenizer(args[0])
	if err != nil {
		return err
	}
	text, err := readText(args[1:], o.file)
	if err != nil {
		return err
	}
	var ids []int32
	var spans []tokenizer.Span
	if o.ordinary {
		ids = tok.EncodeOrdinary(text)
	} else {
		ids, spans = tok.EncodeOffsets(text, o.special)
	}
	tokens := make([]tokenRow, len(ids))
	for i, id := range ids {
		tokens[i] = tokenRow{ID: id, Token: tok.Token(id)}
		if spans != nil {
			tokens[i].Start, tokens[i].End = &spans[i].Start, &spans[i].End
		}
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			IDs    []int32    `json:"ids"`
			Tokens []tokenRow `json:"tokens"`
		}{append([]int32{}, ids...), tokens}) // an empty list, not null
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range tokens {
		if r.Start == nil {
			fmt.Fprintf(table, "%d\t  %q\n", r.ID, r.Token)
			continue
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t  %q\t\n", r.ID, *r.Start, *r.End, r.Token)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s, %s\n", quantity.Of(len(tokens), "token"), quantity.Of(len(text), "byte"))
	return err
}

// readText returns a text: the words, or without any that of a file, or of standard input.
func readText(words []string, file string) (string, error) {
	if len(words) > 0 {
		return strings.Join(words, " "), nil
	}
	data, err := readInput(cmp.Or(file, "-"))
	return string(data), err
}

// tokenRow is one token of a text. Start and end are bytes of it; ordinary text has none.
type tokenRow struct {
	ID    int32  `json:"id"`
	Token string `json:"token"`
	Start *int   `json:"start,omitempty"`
	End   *int   `json:"end,omitempty"`
}

// vocabularies explains MODEL in the help of verbs that need a tokenizer only.
const vocabularies = `MODEL is a model's folder, a tokenizer.json, a GGUF file, a SentencePiece model (*.model), "tiny"
for the built-in model, ORG/NAME[@revision] that art model pull fetched, the folder of a run, or the
name of an encoding of OpenAI: cl100k_base, o200k_base or o200k_harmony.`

// openTokenizer reads the tokenizer that a name refers to, with its chat templates.
func openTokenizer(name string) (*tokenizer.Tokenizer, error) {
	if name == tiny.Name {
		return basemodel.Tokenizer(name)
	}
	if isRun(name) || exists(filepath.Join(name, adapterConfig)) {
		s, err := find(name)
		if err != nil {
			return nil, err
		}
		return basemodel.Tokenizer(s.path)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return namedTokenizer(name, err)
	case info.IsDir():
		return folderTokenizer(name)
	case filepath.Base(name) == "tokenizer.json":
		return folderTokenizer(filepath.Dir(name))
	}
	// The first bytes of a file, or its name, say what its format is.
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if n, err := f.Read(magic); err == nil && bytes.Equal(magic[:n], []byte("GGUF")) {
		return basemodel.Tokenizer(name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var tok *tokenizer.Tokenizer
	if strings.HasSuffix(name, ".model") {
		tok, err = tokenizer.FromSentencePiece(data)
	} else {
		tok, err = tokenizer.New(data, nil)
	}
	return tok, in(name, err)
}

// namedTokenizer reads an encoding of OpenAI, or a model in the cache of the hub. missing says that there is no file.
func namedTokenizer(name string, missing error) (*tokenizer.Tokenizer, error) {
	if tok, err := openai.Encoding(name); err == nil {
		return tok, nil
	}
	if _, err := hub.ParseName(name); err != nil {
		return nil, fmt.Errorf("%w: check the path, or name a model's folder, a tokenizer.json, a GGUF or *.model file, "+
			"ORG/NAME, or an encoding", missing)
	}
	s, err := hub.Cached(name, nil)
	if err != nil {
		return nil, err
	}
	return folderTokenizer(s.Dir)
}

// folderTokenizer reads tokenizer.json, and the chat template if the folder has one.
func folderTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	if _, err := os.Stat(filepath.Join(dir, "tokenizer_config.json")); !errors.Is(err, fs.ErrNotExist) {
		return tokenizer.Load(dir)
	}
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not the folder of a model: it has neither tokenizer.json nor tokenizer_config.json",
			dir)
	}
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.New(data, nil)
	return tok, in(dir, err)
}
