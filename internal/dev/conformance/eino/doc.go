// Package eino tests that the ReAct agent of eino, with its model for OpenAI's API, works with backend/server and is
// recorded. It is its own module, so that eino is no dependency of art.
package eino
