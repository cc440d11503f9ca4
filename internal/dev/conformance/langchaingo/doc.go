// Package langchaingo tests that langchaingo's agents, with its model for OpenAI's API, work with backend/server and
// are recorded. It is its own module, so that langchaingo is no dependency of art.
package langchaingo
