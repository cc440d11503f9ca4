package chat

import (
	"bytes"
	"slices"
)

// stepThoughtCall waits for the end of reasoning in which a tag begins calls.
//
// Calls within reasoning are thoughts: models weigh calls, and quote the syntax of calls. But where the model ends its
// turn right after complete calls, and has never closed its reasoning, it has called, and forgot the tag: these are
// calls, as for vLLM (its reasoning parsers of Qwen3, Kimi K2 and DeepSeek end reasoning at a call) and SGLang
// (tool_start_token). As a thought, the action would be lost, and a reply without any answer be trained on. Unlike
// them, this parser leaves a thought alone that goes on after a call, and one that a limit of tokens or a stop string
// cuts off, be it right after a call: the model did not choose to end there, and an action that it only considered must
// not be carried out.
//
// Therefore reasoning from such a tag on is not given before it is over.
func (p *replyParser) stepThoughtCall(final bool) bool {
	end := []byte(p.format.thinkClose)
	from := max(0, p.seen-len(end))
	if at := bytes.Index(p.pending[from:], end); at >= 0 {
		p.endThought(from + at)
		return true
	}
	if p.seen = len(p.pending); !final {
		return false
	}
	if at, ok := p.callsAtEnd(); ok {
		p.think(bytes.TrimSuffix(p.pending[:at], []byte("\n")))
		p.begun = true
		p.enter(inContent, at)
		return true
	}
	p.think(p.pending)
	p.enter(inReasoning, len(p.pending))
	return false
}

// callsAtEnd returns where the calls begin with which the model has ended its turn.
func (p *replyParser) callsAtEnd() (at int, ok bool) {
	if !p.ended {
		return 0, false
	}
	r := p.format.start(false, p.tools)
	r.state, r.pending = inContent, slices.Clone(p.pending)
	before := 0 // calls that are followed by text
	for more := true; more; {
		more = r.step(true)
		if !r.segment {
			continue
		}
		at, before = len(p.pending)-len(r.pending), len(r.calls.list)
		if r.state == inCalls {
			at -= len(r.opened)
		}
	}
	return at, len(r.calls.list) > before
}
