// Package anthropicgo tests that Anthropic's own Go client works with backend/server. It is its own module, so that the
// client is no dependency of art.
package anthropicgo
