// Package openaigo tests that OpenAI's own Go client works with backend/server. It is a module of its own, so that the
// client is no dependency of art.
package openaigo
