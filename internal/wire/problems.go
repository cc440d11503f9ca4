package wire

import (
	"strconv"
	"strings"
)

// maxListed limits the problems that an error lists.
const maxListed = 20

// problemList collects what is wrong with a request, up to maxListed problems: a request can have millions.
type problemList struct {
	listed []*Error
	more   bool // some are not listed
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
		p.add(FieldError(field, format, args...))
	}
}

// full reports whether further problems would not be listed, so that there is no need to find them.
func (p *problemList) full() bool { return len(p.listed) == maxListed }

// err joins the messages of all problems, with the field and the code of the first. It is nil if there is none.
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

// maxQuoted limits the bytes of a client's text that an error repeats.
const maxQuoted = 64

// beginning truncates a text to maxQuoted bytes.
func beginning(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "..."
}

// Quote quotes a client's text in an error message, truncated if it is long.
func Quote[S ~string](s S) string {
	return strconv.Quote(beginning(string(s)))
}
