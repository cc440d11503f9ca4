package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/tokenizer"
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
			return func(args []string, stdout, _ io.Writer) error { return o.run(args, os.Stdin, stdout) }
		},
	}
}

// tokenizeOptions are the flags of the verb.
type tokenizeOptions struct {
	file                    string
	special, ordinary, json bool
}

func (o *tokenizeOptions) run(args []string, stdin io.Reader, stdout io.Writer) error {
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
	text, err := o.text(args[1:], stdin)
	if err != nil {
		return err
	}
	tokens := o.tokens(tok, text)
	if o.json {
		return writeTokensJSON(stdout, tokens)
	}
	return writeTokens(stdout, tokens, text)
}

func (o *tokenizeOptions) text(args []string, stdin io.Reader) (string, error) {
	if len(args) > 0 {
		return strings.Join(args, " "), nil
	}
	var data []byte
	var err error
	if o.file == "" || o.file == "-" {
		data, err = io.ReadAll(stdin)
	} else {
		data, err = readInput(o.file)
	}
	return string(data), err
}

// tokenRow is one token of a text. Start and end are bytes of it; ordinary text has none.
type tokenRow struct {
	ID    int32  `json:"id"`
	Token string `json:"token"`
	Start *int   `json:"start,omitempty"`
	End   *int   `json:"end,omitempty"`
}

func (o *tokenizeOptions) tokens(tok *tokenizer.Tokenizer, text string) []tokenRow {
	rows := []tokenRow{}
	if o.ordinary {
		for _, id := range tok.EncodeOrdinary(text) {
			rows = append(rows, tokenRow{ID: id, Token: tok.Token(id)})
		}
		return rows
	}
	ids, spans := tok.EncodeOffsets(text, o.special)
	for i, id := range ids {
		rows = append(rows, tokenRow{ID: id, Token: tok.Token(id), Start: &spans[i].Start, End: &spans[i].End})
	}
	return rows
}

// writeTokensJSON writes {"ids": [...], "tokens": [...]}.
func writeTokensJSON(w io.Writer, rows []tokenRow) error {
	ids := make([]int32, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		IDs    []int32    `json:"ids"`
		Tokens []tokenRow `json:"tokens"`
	}{ids, rows})
}

// writeTokens writes a table.
func writeTokens(w io.Writer, rows []tokenRow, text string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range rows {
		if r.Start == nil {
			fmt.Fprintf(table, "%d\t  %q\n", r.ID, r.Token)
			continue
		}
		fmt.Fprintf(table, "%d\t%d\t%d\t  %q\t\n", r.ID, *r.Start, *r.End, r.Token)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s, %s\n", quantity.Of(len(rows), "token"), quantity.Of(len(text), "byte"))
	return err
}
