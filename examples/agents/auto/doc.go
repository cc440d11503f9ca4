// Package auto trains a model for a task from a description of it alone: it is ART's AutoRL.
//
//	p := &auto.Project{Dir: "tickets", Task: "Turn a complaint into a ticket with the fields product and urgency.",
//		Model: model, Base: base, Writer: writer, Judge: judge}
//	estimate, err := p.Estimate()
//	result, err := p.Run(ctx)
//
// A writer, which may be the base model, writes inputs, a system prompt and a rubric. Inputs that are like others are
// left out, and the rest must differ enough. Rollouts are one reply each; a judge compares those of an input. The
// result is the comparison with the base model on inputs that were held out, in both orders, with a confidence
// interval, and a page that shows replies of both side by side.
//
// All that was written is kept in the project's folder, and the run in that of its backend: a project that was stopped
// goes on where it was.
package auto
