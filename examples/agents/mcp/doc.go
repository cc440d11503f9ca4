// Package mcp trains an agent for the tools of any MCP server (Model Context Protocol): the address or the command of
// a server in, a trained agent out. It is ART's MCP-RL.
//
//	server, err := mcp.Open("https://example.com/mcp", nil) // or a command: "npx some-server"
//	about, err := server.Describe(ctx)
//	scenarios, _, err := mcp.Generate(ctx, about, &mcp.GenerateOptions{Model: generator, Want: 24})
//	train, val := mcp.Split(scenarios, seed)
//	agent := &mcp.Agent{Server: server, Known: about}
//	outcome, err := (&agents.Training[mcp.Scenario]{Model: model, Rollout: agent.Rollout, Train: train, Val: val,
//		After: judge.After, Control: base, Referee: judge}).Run(ctx)
//
// # A rollout
//
// Each rollout has a session of its own. The agent gets the server's tools and one more, complete_task, which ends the
// rollout. It has a number of turns; in each the model replies once, and all tool calls of the reply are carried out
// in their order. Results are cut to a number of characters, and the text says so. What a tool says is wrong goes back
// to the model as the result of the call.
//
// A server that does not answer in time, ends, sends a message that is too large, or offers other tools than those
// that the scenarios were made for fails the rollout: with a reason, as a [art.Failure] of its group. The others go
// on. No call is ever made twice.
//
// What a server returns is data: it becomes the content of tool messages only, whatever it says. A checker looks at
// what was done, see package synthetic, and package ruler tells its judge not to follow what trajectories say.
package mcp
