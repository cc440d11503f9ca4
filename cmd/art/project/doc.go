// Package project has what art init lays out: the agent and its reward, which art train trains too, and templates of
// the files around them.
package project
