// Package agents has what MCP-RL and AutoRL share: tasks that a model writes, without duplicates; comparisons with a
// control model, in both orders; and a training with validations that decide when to stop.
package agents
