package art

import "net/http"

// HTTPClient returns a client that answers OpenAI requests as m, in process and without a socket: hand it to the OpenAI
// client that an agent already has. Any host will do. Requests made with a context of [Record] are recorded, and their
// seeds follow a gather's context like those of [Model.Chat]. When the code that made them fails after an answer that was
// an error, [Record] and the [Failure] of a gather tell that answer, which the errors of many clients leave out.
//
// When m is not registered, or its backend is no [HTTPServer], each request fails with [ErrNotRegistered] or
// [ErrUnsupported]. A client made before [Model.Register] works after it.
func (m *Model) HTTPClient() *http.Client {
	return &http.Client{Transport: transport{m}}
}

// transport looks the backend up at each request, so that a client may be made before the model is registered.
type transport struct{ m *Model }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	server, err := capability[HTTPServer](t.m, "serve request", "art.HTTPServer, such as backend/local")
	if err != nil {
		if req.Body != nil {
			req.Body.Close() // which a RoundTripper owes its caller
		}
		return nil, err
	}
	response, err := server.Transport(t.m).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	noteAnswer(req.Context(), response)
	return response, nil
}
