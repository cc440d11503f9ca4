package openai

import (
	"strconv"
	"strings"
)

// maxListed is how many problems an answer lists.
const maxListed = 20

// problemList collects what is wrong with a request, up to [maxListed] problems: a request can have millions.
type problemList struct {
	listed []*Error
	more   bool // there are others
}

// add adds a problem.
func (p *problemList) add(problem *Error) {
	if p.full() {
		p.more = true
		return
	}
	p.listed = append(p.listed, problem)
}

// require adds a problem unless ok.
func (p *problemList) require(ok bool, field, format string, args ...any) {
	if !ok {
		p.add(fieldError(field, format, args...))
	}
}

// full tells that no further problem is listed: there is no need to look for one.
func (p *problemList) full() bool { return len(p.listed) == maxListed }

// err makes one error of all: their messages, and the field and code of the first. It is nil when there is none.
func (p *problemList) err() error {
	if len(p.listed) == 0 {
		return nil
	}
	messages := make([]string, len(p.listed))
	for i, problem := range p.listed {
		messages[i] = problem.Message
	}
	if p.full() || p.more {
		messages = append(messages, "there may be more")
	}
	joined := *p.listed[0]
	joined.Message = strings.Join(messages, "; ")
	return &joined
}

// maxQuoted is how many bytes of a client's text an answer repeats.
const maxQuoted = 64

// beginning returns the beginning of a text.
func beginning(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "..."
}

// quoted quotes the beginning of a client's text.
func quoted[S ~string](s S) string {
	return strconv.Quote(beginning(string(s)))
}
