package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/grammar"
	"github.com/goart-dev/art/tokenizer/chat"
)

// maxGrammars is how many compiled grammars a model keeps. Each takes up to about 64 MiB, most of them much less.
const maxGrammars = 32

// grammars compiles the restrictions of requests to a model.
type grammars struct {
	syntax     func() (chat.Syntax, error)
	vocabulary func() (*grammar.Vocabulary, error) // made when it is first needed
	cache      *grammar.Cache
}

func newGrammars(s *base, template *chat.Template) *grammars {
	return &grammars{
		syntax:     sync.OnceValues(template.Syntax),
		vocabulary: sync.OnceValues(func() (*grammar.Vocabulary, error) { return vocabularyOf(s, template) }),
		cache:      grammar.NewCache(maxGrammars, nil),
	}
}

// vocabularyOf returns the tokens of a model. Special tokens, tags, and ids without a token are never part of a text.
func vocabularyOf(s *base, template *chat.Template) (*grammar.Vocabulary, error) {
	tokens := make([][]byte, s.config.VocabSize)
	for id := range int32(min(len(tokens), s.tokenizer.VocabSize())) {
		if !s.tokenizer.IsSpecial(id) {
			tokens[id] = s.tokenizer.TokenBytes(id)
		}
	}
	syntax, err := template.Syntax()
	if err != nil {
		return nil, err
	}
	for _, id := range syntax.Tags {
		if int(id) < len(tokens) {
			tokens[id] = nil
		}
	}
	beyond := func(id int32) bool { return int(id) >= len(tokens) } // tokens that the model cannot sample
	return grammar.NewVocabulary(tokens, slices.DeleteFunc(template.EndOfTurn(), beyond))
}

// chat returns the mask of a reply to a conversation; nil if nothing restricts it.
func (g *grammars) chat(op string, template *chat.Template, prompt []int32, req *art.ChatRequest) (engine.Mask, error) {
	if !req.Settings.Restricts() {
		return nil, nil
	}
	syntax, err := g.syntax()
	if err != nil {
		return nil, grammarError(op, err)
	}
	reply, err := replyGrammar(&syntax, req)
	if err != nil {
		return nil, grammarError(op, err)
	}
	if len(syntax.ThinkClose) > 0 && !template.EndsReasoning(prompt) {
		reply = afterReasoning(&syntax, template.OpensReasoning(prompt), reply)
	}
	return g.mask(op, reply)
}

// mask compiles a grammar, unless it is in the cache, and begins a reply.
func (g *grammars) mask(op string, of grammar.Grammar) (engine.Mask, error) {
	vocabulary, err := g.vocabulary()
	if err != nil {
		return nil, grammarError(op, err)
	}
	compiled, err := g.cache.Compile(of, vocabulary)
	if err != nil {
		return nil, grammarError(op, fmt.Errorf("%w: %w", art.ErrInvalid, err))
	}
	return compiled.Matcher(), nil
}

// grammarError returns an error about the restrictions of a request.
func grammarError(op string, err error) error {
	if errors.Is(err, chat.ErrNoSyntax) {
		err = fmt.Errorf("%w: ResponseFormat or ToolChoice of ChatOptions: %w", art.ErrUnsupported, err)
		return &art.Error{Op: op, Err: err, Hint: "leave them out and ask for the format in the prompt"}
	}
	return &art.Error{Op: op, Err: err, Hint: "change the response format, or the parameters of the tools"}
}

// replyGrammar is what may follow the reasoning of a reply.
func replyGrammar(syntax *chat.Syntax, req *art.ChatRequest) (grammar.Grammar, error) {
	format, choice := req.Settings.ResponseFormat, req.Settings.ToolChoice
	if choice == nil && len(req.Tools) == 0 {
		return formatGrammar(format), nil
	}
	calls, err := callsGrammar(syntax, req.Tools, choice)
	if err != nil || choice != nil {
		return calls, err
	}
	return grammar.Alternation(formatGrammar(format), calls), nil
}

// afterReasoning allows reasoning before a reply. open says that the prompt has opened it.
func afterReasoning(syntax *chat.Syntax, open bool, reply grammar.Grammar) grammar.Grammar {
	var stops []string // a tag that is a token is none, because text has no such tokens
	if last := syntax.ThinkClose[0]; !last.IsToken {
		stops = append(stops, last.Text)
	}
	reasoning := grammar.Sequence(
		grammar.Text(stops...), spell(syntax.ThinkClose), grammar.Repeat(grammar.Literal("\n"), 0, 2))
	if !open {
		reasoning = grammar.Optional(grammar.Sequence(spell(syntax.ThinkOpen), reasoning))
	}
	return grammar.Sequence(reasoning, reply)
}

// callsGrammar is calls of tools: one of a named tool, else one or several of any.
func callsGrammar(syntax *chat.Syntax, tools []art.Tool, choice *art.ToolChoice) (grammar.Grammar, error) {
	if syntax.Call == nil {
		return nil, syntax.NoCall
	}
	named := choice != nil && choice.Mode == art.ToolNamed
	var calls []grammar.Grammar
	for i := range tools {
		if !named || tools[i].Name == choice.Name {
			calls = append(calls, callGrammar(syntax.Call, &tools[i]))
		}
	}
	call, more := grammar.Alternation(calls...), -1
	if named {
		more = 0
	}
	rest := grammar.Repeat(grammar.Sequence(spell(syntax.Call.Between), call), 0, more)
	return grammar.Sequence(spell(syntax.Call.Open), call, rest, spell(syntax.Call.Close)), nil
}

// callGrammar is one call of a tool.
func callGrammar(syntax *chat.CallSyntax, tool *art.Tool) grammar.Grammar {
	name, _ := json.Marshal(tool.Name) // a string always encodes
	return grammar.Sequence(spell(syntax.Begin), grammar.Literal(string(name)), spell(syntax.Middle),
		argumentsGrammar(tool.Parameters), spell(syntax.End))
}

// argumentsGrammar is the arguments of a call: always an object, also where the schema does not say so.
func argumentsGrammar(parameters json.RawMessage) grammar.Grammar {
	var keywords map[string]json.RawMessage
	if len(parameters) > 0 && json.Unmarshal(parameters, &keywords) != nil {
		return grammar.JSONSchema(parameters, nil) // the error of the schema is its own
	}
	if len(keywords) == 0 {
		return grammar.JSONObject(nil)
	}
	if _, typed := keywords["type"]; typed {
		return grammar.JSONSchema(parameters, nil)
	}
	keywords["type"] = json.RawMessage(`"object"`)
	schema, _ := json.Marshal(keywords) // raw JSON always encodes
	return grammar.JSONSchema(schema, nil)
}

// spell is a text and the tags in it.
func spell(parts []chat.Part) grammar.Grammar {
	list := make([]grammar.Grammar, len(parts))
	for i, p := range parts {
		if list[i] = grammar.Literal(p.Text); p.IsToken {
			list[i] = grammar.Token(p.Token)
		}
	}
	return grammar.Sequence(list...)
}

// formatGrammar is a text of a format.
func formatGrammar(f *art.ResponseFormat) grammar.Grammar {
	switch f.Type {
	case art.FormatJSONSchema:
		return grammar.JSONSchema(f.Schema, nil)
	case art.FormatRegex:
		return grammar.Regex(f.Regex)
	case art.FormatChoice:
		return grammar.Choice(f.Choice...)
	}
	return grammar.JSONObject(nil)
}

// limits are a mask for AllowedTokenIDs and BadWords, within that of a grammar.
type limits struct {
	grammar engine.Mask // nil: any text
	allowed []uint32    // a bit for each id; nil: all
	bad     [][]int32   // words, as tokens
	said    []int32     // the last tokens of the reply, as many as the longest word has
}

// limited returns a mask that restricts further what another one allows, which may be nil.
func (s *base) limited(grammar engine.Mask, settings art.Sampling) engine.Mask {
	if settings.AllowedTokenIDs == nil && len(settings.BadWords) == 0 {
		return grammar
	}
	l := &limits{grammar: grammar}
	if settings.AllowedTokenIDs != nil {
		l.allowed = make([]uint32, (s.config.VocabSize+31)/32)
		for _, id := range settings.AllowedTokenIDs {
			l.allowed[id/32] |= 1 << (id % 32)
		}
	}
	for _, word := range settings.BadWords {
		for _, spelled := range []string{word, " " + strings.TrimLeft(word, " ")} {
			if ids := s.tokenizer.Encode(spelled, false); len(ids) > 0 {
				l.bad = append(l.bad, ids)
			}
		}
	}
	return l
}

// Mask implements [engine.Mask].
func (l *limits) Mask(dst []uint32) {
	if l.grammar != nil {
		l.grammar.Mask(dst)
	} else {
		for i := range dst {
			dst[i] = ^uint32(0)
		}
	}
	for i, word := range l.allowed {
		dst[i] &= word
	}
	for _, word := range l.bad {
		last := len(word) - 1
		if id := word[last]; l.ends(word[:last]) && int(id/32) < len(dst) {
			dst[id/32] &^= 1 << (id % 32)
		}
	}
}

// ends reports whether the reply so far ends with tokens.
func (l *limits) ends(tokens []int32) bool {
	return len(tokens) <= len(l.said) && slices.Equal(l.said[len(l.said)-len(tokens):], tokens)
}

// Accept implements [engine.Mask].
func (l *limits) Accept(id int32) error {
	longest := 0
	for _, word := range l.bad {
		longest = max(longest, len(word))
	}
	l.said = append(l.said, id)
	l.said = l.said[max(0, len(l.said)-longest):]
	if l.grammar == nil {
		return nil
	}
	return l.grammar.Accept(id)
}

// Finished implements [engine.Mask]. Only a grammar finishes a reply.
func (l *limits) Finished() bool { return l.grammar != nil && l.grammar.Finished() }

// promptError translates an error of rendering a prompt.
func promptError(err error) error {
	e := &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	if errors.Is(err, chat.ErrToolsLeftOut) {
		e.Hint = `set ModelOptions.ToolFormat, such as to "hermes", or send no tools and no calls of tools`
	}
	return e
}
